import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CliResult, type ModelCli, modelCli } from "../support/model-cli.ts";
import { ModelWorld, spotPolicy } from "../support/model-world.ts";
import { type Mistake, mistakes, plan } from "./mistake-list.ts";

/**
 * What is said about typical mistakes. The page docs/mistakes.md is written from this: `vitest -u`
 * rewrites it.
 */
const head = "apiVersion: lastcall.dev/v1alpha1\nkind: DeparturePolicy\nmetadata: {name: spot}\n";
const files = [
  ...["nodes.json", "empty.yaml", "tabs.yaml", "open.yaml", "policies.tgz"],
  ...["folder", "chart", "none"],
];

let world: ModelWorld;
let cli: ModelCli;
let folder: string;

beforeAll(async () => {
  world = new ModelWorld();
  for (const name of ["node-1", "ip-10-0-0-1.ec2.internal"]) world.addNode(name, "a");
  world.patchNode("node-1", { metadata: { annotations: { "lastcall.dev/hold": "4 hours" } } });
  spotPolicy(world, { lifetime: { max: "24h" } });
  cli = await modelCli(world);
  folder = await mkdtemp(join(tmpdir(), "lastcall-mistakes-"));
  const list = world.get("/api/v1/nodes");
  await writeFile(join(folder, "nodes.json"), JSON.stringify({ ...list, kind: "NodeList" }));
  await mkdir(join(folder, "folder"));
  await mkdir(join(folder, "chart"));
  await writeFile(join(folder, "chart", "Chart.yaml"), "name: web\n");
  await writeFile(join(folder, "policies.tgz"), gzipSync("a policy"));
  await writeFile(join(folder, "empty.yaml"), "");
  await writeFile(join(folder, "tabs.yaml"), `${head}spec:\n\tlifetime: {max: 24h}\n`);
  await writeFile(join(folder, "open.yaml"), `${head}spec: {lifetime: {max: 24h}\n`);
});

afterAll(async () => {
  await cli.close();
  await rm(folder, { recursive: true });
});

async function resultOf({ typed, policy }: Mistake): Promise<CliResult> {
  const file = join(folder, "policy.yaml");
  await writeFile(file, `${head}spec:\n  ${policy ?? "{}"}\n`);
  const words = typed.split(" ").map((word) => {
    if (word === "POLICY") return file;
    return files.includes(word) ? join(folder, word) : word;
  });
  const { stdout, stderr, exit } = await cli.run(words);
  return { exit, stdout, stderr: withoutFolders(stderr) };
}

/** The page shows the names of files alone. */
function withoutFolders(text: string): string {
  return text.replaceAll(`${folder}/`, "").replaceAll(/\/\S*\/(?=kubeconfig)/g, "");
}

/** The line that answers the mistake: that of a check, or the first error. */
function answerIn({ stdout, stderr }: CliResult, { says }: Mistake): string {
  const lines = [...stderr.split("\n"), ...stdout.split("\n")].map((line) => line.trim());
  return lines.find((line) => says.every((part) => line.includes(part))) ?? stderr + stdout;
}

const told = new Map<Mistake, string>();

describe.each(Object.entries(mistakes))("%s, a mistake", (_, list) => {
  it.each(list)("is answered: $policy $typed", async (mistake) => {
    const result = await resultOf(mistake);
    const answer = answerIn(result, mistake);
    for (const part of mistake.says) expect(answer).toContain(part);
    expect(result.exit).toBe(mistake.exit);
    told.set(mistake, answer);
  });
});

it("docs/mistakes.md shows what is said of each", async () => {
  const code = (text: string) => `\`${text.replaceAll("|", "\\|").replaceAll("`", "'")}\``;
  const parts = Object.entries(mistakes).flatMap(([title, list]) => [
    `## ${title}\n`,
    "| mistake | what is said |\n|---|---|",
    ...list.map((one) => {
      const { typed, policy } = one;
      const shown = typed === plan && policy !== undefined ? policy : `lastcall ${typed}`;
      return `| ${code(shown.replaceAll("POLICY", "policy.yaml"))} | ${code(told.get(one) ?? "")} |`;
    }),
    "",
  ]);
  const intro = [
    "<!-- Written by test/cli/mistakes.test.ts; vitest -u rewrites it. -->",
    "# Mistakes, and what is said about them\n",
    "Typical mistakes, each typed into the program, and its answer: what was found, where, and what to write instead. The",
    "first table shows fields of a policy with `lastcall plan -f policy.yaml`; the API server answers `kubectl apply` with the",
    "same rules. [Errors](errors.md) lists the codes, [troubleshooting](troubleshooting.md) the reasons.\n",
  ];
  await expect([...intro, ...parts].join("\n")).toMatchFileSnapshot("../../docs/mistakes.md");
});
