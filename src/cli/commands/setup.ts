import { cloudAdapters } from "../../cloud/cloud-adapters.ts";
import { knownClouds } from "../../cloud/facts/known-clouds.ts";
import { didYouMean } from "../../config/problem.ts";
import { crdOf } from "../../config/schema/crd.ts";
import { resourceDefinitions } from "../../config/schema/resource-definition.ts";
import { printYaml, readYaml } from "../../config/yaml-text.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import { orList } from "../../core/reason/word-list.ts";
import { LastcallError } from "../../errors.ts";
import { runScript } from "../../runtime/child-process.ts";
import { connect } from "../cluster/connect.ts";
import { type CommandIo, type CommandRun, printData } from "../command-line/command.ts";

type Setup = Parameters<CommandRun<"setup">>[0];

/** Prints, or with `--apply` applies, what has to be installed once. */
export const runSetup: CommandRun<"setup"> = async (input) => {
  const [what = ""] = input.words;
  const adapters = names.includes(what) ? cloudAdapters[what] : undefined;
  if (adapters !== undefined) return setUpCloud(adapters, input);
  const objects = await setupObjects(input);
  // Printing, or worse applying, would be the opposite of what was requested.
  if (input.options.undo) {
    const found = `--undo was given, expected it only with ${orList(names)}`;
    throw new LastcallError("USAGE", `Cannot set up ${input.words[0]}: ${found}`);
  }
  if (!input.options.apply) {
    await printAll(objects, input);
    return 0;
  }
  await applyAll(objects, input);
  return 0;
};

/** Prints input for `kubectl apply -f -` in every format. */
async function printAll(objects: readonly KubeObject[], { options, io }: Setup): Promise<void> {
  if (options.output === "json") {
    await printData({ apiVersion: "v1", kind: "List", items: objects }, "json", io);
    return;
  }
  io.out(objects.map(printYaml).join("---\n"));
}

const names = knownClouds.map(({ name }) => name);
const parts = ["crds", "admission", ...names];

function partHint(word = ""): string {
  const cloud = knownClouds.find(({ kubernetes }) => kubernetes === word.toLowerCase());
  const meant = cloud?.name ?? didYouMean(word, parts);
  return meant === undefined ? "" : ` (did you mean ${meant}?)`;
}

async function setupObjects({ words, options, io }: Setup): Promise<readonly KubeObject[]> {
  const what = words[0];
  if (what === "crds") return resourceDefinitions.map((one) => crdOf(one) as KubeObject);
  if (what !== "admission") {
    throw new LastcallError(
      "USAGE",
      `Cannot set up ${JSON.stringify(what)}: unknown part${partHint(what)}, expected ${orList(parts)}`,
    );
  }
  const { admissionBudget, admissionManifests } = await import("../../audit/admission.ts");
  const { loadPlatform } = await import("../../audit/input/read-manifests.ts");
  const { nodeFiles } = await import("../input/read-objects.ts");
  const platform = await loadPlatform(options.platform, nodeFiles(io.files.stdinBytes()));
  const text = admissionManifests({
    ...admissionBudget(platform),
    action: options.action,
    scope: options.scope,
    namespace: options.namespace ?? "lastcall",
  });
  return readYaml(text).documents.map(({ value }) => value as KubeObject);
}

async function applyAll(objects: readonly KubeObject[], { options, io }: Setup): Promise<void> {
  const { api, close } = await connect({ ...options, signal: io.signal }, io);
  try {
    for (const object of objects) await apply(api, object, io);
  } finally {
    close();
  }
}

/** Server-side apply, so a second run of the same command changes nothing. */
async function apply(api: KubeApi, object: KubeObject, io: CommandIo): Promise<void> {
  const { apiError } = await import("../../kube/object/api-call.ts");
  const name = object.metadata?.name ?? "";
  const request = {
    method: "PATCH",
    path: pathOf(object),
    patchType: "application/apply-patch+yaml",
    query: { fieldManager: "lastcall-setup", force: "true" },
    body: object,
  } as const;
  const answer = await api.send(request);
  if (answer.status >= 300) throw apiError(request, answer);
  io.out(`${object.kind?.toLowerCase()}/${name} applied\n`);
}

/** The API collections of the kinds that are installed here. */
const collections: Readonly<Record<string, string>> = {
  CustomResourceDefinition: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
  ValidatingAdmissionPolicy: "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
  ValidatingAdmissionPolicyBinding:
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
};

function pathOf({ kind = "", metadata = {} }: KubeObject): string {
  const collection = collections[kind] ?? `/api/v1/namespaces/${metadata.namespace}/configmaps`;
  return `${collection}/${metadata.name}`;
}

/** Prints the script of a cloud, or runs it with bash. */
async function setUpCloud(
  adapters: (typeof cloudAdapters)[string],
  { words, options, io }: Setup,
): Promise<number> {
  const script = await adapters.setupScript(options);
  if (!options.apply) {
    io.out(script);
    return 0;
  }
  const end = await runScript(script, io);
  if (end === "Ended") return 0;
  const why =
    "notRun" in end
      ? `bash could not be started (${end.notRun}) and nothing was done, expected bash on the PATH; without --apply the script is printed`
      : `the script ended with ${end.endedBy}, see its last lines above`;
  throw new LastcallError("SCRIPT_FAILED", `Cannot set up ${words[0]}: ${why}`);
}
