import { parsePolicyObject } from "../../config/policy/parse-policy-object.ts";
import { sentenceOf } from "../../config/problem.ts";
import { printYaml, readYaml } from "../../config/yaml-text.ts";
import { isFields, nameOf } from "../../core/json/json-field.ts";
import { cronProblem } from "../../core/limits/windows.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { LastcallError } from "../../errors.ts";
import {
  itemsOf,
  type ManifestObject,
  onlyWorkload,
  type PolicyManifest,
  type ToolSetup,
  type Translation,
  workloadsOf,
} from "../../migrate/workload.ts";
import { type CommandIo, type CommandRun, printData } from "../command-line/command.ts";
import { type MigrateCluster, type Tool, toolNamed } from "../migrate/migrate-cluster.ts";

type Migrate = Parameters<CommandRun<"migrate">>[0];

/**
 * Prints another tool's settings as policies. Prints nothing if a limit of the tool cannot be
 * parsed; changes nothing except with `--apply`, which needs the cluster.
 */
export const runMigrate: CommandRun<"migrate"> = async (input) => {
  const tool = toolNamed(input.words[0]);
  const { options } = input;
  if (options.values !== undefined && options.manifest !== undefined) {
    const found = "--values and --manifest were both given, expected one of them or neither";
    throw new LastcallError("USAGE", `Cannot migrate ${tool.name}: ${found}`);
  }
  if (options.valuesOut === "-") {
    const found = "--values-out was given -, expected a file: standard output is for the policies";
    throw new LastcallError("USAGE", `Cannot migrate ${tool.name}: ${found}`);
  }
  const isLive = options.values === undefined && options.manifest === undefined;
  const cluster = isLive || options.apply ? await openCluster(tool, input) : undefined;
  try {
    const translation = tool.translate(await setupOf(tool, input, cluster));
    const policies = translation.policies.map(checked);
    await tell(translation, input);
    await cluster?.cleanUp({ documents: translation.policies, policies, apply: options.apply });
  } finally {
    cluster?.close();
  }
  return cluster?.hasFailed() ? 1 : 0;
};

async function openCluster(tool: Tool, { options, io }: Migrate): Promise<MigrateCluster> {
  const { MigrateCluster: Opened } = await import("../migrate/migrate-cluster.ts");
  return Opened.open(tool, options, io);
}

async function setupOf(
  tool: Tool,
  { options, io }: Migrate,
  cluster: MigrateCluster | undefined,
): Promise<ToolSetup> {
  if (options.values !== undefined) {
    return tool.ofValues(await valuesIn(options.values, io), fileNamed(options.values));
  }
  if (options.manifest !== undefined) {
    const objects = (await documentsIn(options.manifest, io)).flatMap(itemsOf);
    return setupIn(tool, objects, fileNamed(options.manifest));
  }
  if (cluster === undefined) throw new Error("Cannot read the cluster: it was not opened");
  return setupIn(tool, await cluster.workloadObjects(), "the cluster");
}

function setupIn(tool: Tool, objects: readonly ManifestObject[], place: string): ToolSetup {
  const workload = onlyWorkload(workloadsOf(objects, tool.image), place, tool.image);
  const where = workload.namespace === undefined ? "" : `${workload.namespace}/`;
  return tool.ofWorkload(workload, objects, `${workload.kind} ${where}${workload.name}`);
}

/** Throws INPUT_INVALID for anything that is not a values file, whose settings would be missed. */
async function valuesIn(path: string, io: CommandIo): Promise<unknown> {
  const documents = await documentsIn(path, io);
  // The items of a list from the API server have no kind, the list itself has.
  const object = [...documents.flatMap(itemsOf), ...documents.filter(isFields)].find(
    ({ apiVersion, kind }) => typeof apiVersion === "string" && typeof kind === "string",
  );
  if (object !== undefined) {
    const found = `found a manifest of a ${object.kind}, expected values, or --manifest for this file`;
    throw new LastcallError("INPUT_INVALID", `Cannot translate ${fileNamed(path)}: ${found}`);
  }
  if (documents.length > 1) {
    const found = `found ${documents.length} documents, expected one of values`;
    throw new LastcallError("INPUT_INVALID", `Cannot translate ${fileNamed(path)}: ${found}`);
  }
  return documents[0] ?? {};
}

function fileNamed(path: string): string {
  return path === "-" ? "standard input" : path;
}

/** The documents of a YAML file. Throws INPUT_INVALID with its line; binary data is not quoted. */
async function documentsIn(path: string, io: CommandIo): Promise<readonly unknown[]> {
  const file = fileNamed(path);
  const text = path === "-" ? await io.files.stdin() : await io.files.readText(path);
  if (text.includes("\uFFFD")) {
    throw new LastcallError(
      "INPUT_INVALID",
      `Cannot read ${file}: it is binary data, expected YAML in UTF-8`,
    );
  }
  const { documents, mistakes } = readYaml(text);
  const [mistake] = mistakes;
  if (mistake !== undefined) {
    const sentence = sentenceOf({ pointer: [], ...mistake });
    throw new LastcallError("INPUT_INVALID", `Cannot read ${file}:${mistake.line}: ${sentence}`);
  }
  return documents.map(({ value }) => value);
}

/** The output must be valid for the cluster. */
function checked(document: PolicyManifest): Policy {
  const parsed = parsePolicyObject(document, { cronProblem, unknownFields: "Refuse" });
  if ("policy" in parsed) return parsed.policy;
  const [problem] = parsed.problems;
  const sentence = problem === undefined ? "it cannot be read" : sentenceOf(problem);
  throw new LastcallError(
    "INPUT_INVALID",
    `Cannot translate the settings: the policy ${document.metadata.name} would not be valid: ${sentence}`,
  );
}

/** The file comes first: if it cannot be written, nothing is printed. */
async function tell({ policies, values, notes }: Translation, { options, io }: Migrate) {
  if (options.valuesOut !== undefined) {
    const named = policies.map(({ metadata, spec }) => ({ name: metadata.name, spec }));
    await io.files.writeText(options.valuesOut, printYaml({ ...values, policies: named }));
  }
  if (options.output === "json") {
    await printData({ apiVersion: "v1", kind: "List", items: policies }, "json", io);
  } else io.out(policies.map(printYaml).join("---\n"));
  for (const note of notes) io.err(`lastcall: ${nameOf(note)}\n`);
}
