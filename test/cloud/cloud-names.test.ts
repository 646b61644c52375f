import { describe, expect, it } from "vitest";
import { knownClouds } from "../../src/cloud/facts/known-clouds.ts";
import { moduleOf } from "../../tools/module-graph.ts";
import { sourceFiles } from "../../tools/source-tree.ts";

/**
 * The files outside a cloud's folder whose code names it, and why none of them has to be touched
 * for another cloud. Comments may name what they cite.
 */
const allowed: Readonly<Record<string, string>> = {
  "src/cloud/facts/known-clouds.ts": "a list of clouds",
  "src/cloud/clouds.ts": "a list of clouds",
  "src/cloud/cloud-adapters.ts": "a list of clouds",

  "src/config/schema/action-schema.ts": "actions in AWS",
  "src/cli/assemble/controller-ports.ts": "actions in AWS",
  "src/cli/lambda/create-responder.ts": "the Lambda responder",
  "src/cli/lambda/read-invocation.ts": "the Lambda responder",
  "src/cli/lambda/responder.ts": "the Lambda responder",
  "src/cli/commands/doctor.ts": "the queue, which is one of SQS",
  "src/doctor/checks/cloud-checks.ts": "the queue, which is one of SQS",

  "src/migrate/termination-handler.ts": "translates aws-node-termination-handler",
  "src/migrate/node-marks.ts": "translates aws-node-termination-handler",
  "src/migrate/killer-setup.ts": "translates the killer of estafette, which is one for GKE",

  "src/audit/rules/spot-rules.ts": "what load balancers of EC2 and GKE are asked for in manifests",
  "src/audit/objects/workload.ts": "API groups without a kind that has pods",
  "src/cli/cluster/read-cluster.ts": "an API group that the audit reads where it exists",
  "src/sim/model-cluster.ts": "the model is a cluster on Compute Engine",
  "src/sim/cloud/model-machine.ts": "the model is a cluster on Compute Engine",
  "src/cli/doctor/admission-trials.ts": "an example of a source",
  "src/cli/command-line/command-list.ts": "an example of a command",
};

const words = knownClouds.map(({ name }) => name);

function codeOf(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\//g, "").replaceAll(/(^|\s)\/\/ .*$/gm, "");
}

/** `aws`, `awsOptions` and `createAwsRunner` name it, `draws` does not. */
function names(code: string, word: string): boolean {
  const capital = word.charAt(0).toUpperCase() + word.slice(1);
  const form = `(?<![A-Za-z])${word}(?![a-z])|${capital}(?![a-z])|${word.toUpperCase()}(?![A-Z])`;
  return new RegExp(form).test(code);
}

const sources = sourceFiles(["src"]);

describe("the names of clouds", () => {
  it("are in their own folders, and in no other file but those that have a reason", () => {
    const naming = sources.filter(({ path, text }) =>
      words.some((word) => !path.startsWith(`src/cloud/${word}/`) && names(codeOf(text), word)),
    );
    expect(naming.map(({ path }) => path)).toEqual(Object.keys(allowed).toSorted());
  });
});

describe("what an agent can load", () => {
  it("contains notice sources of all clouds, and no client of any", () => {
    const imports = new Map(sources.map((file) => [file.path, moduleOf(file).imports]));
    const reached = new Set(["src/cli/agent-main.ts"]);
    for (const path of reached)
      for (const next of imports.get(path)?.keys() ?? []) reached.add(next);
    const ofClouds = [...reached].filter((path) => /^src\/cloud\/[^/]+\//.test(path));
    for (const word of words) expect(ofClouds).toContain(`src/cloud/${word}/notice-source.ts`);
    expect(ofClouds.filter((path) => /adapters|compute|client|access|setup-/.test(path))).toEqual([
      "src/cloud/metadata/metadata-client.ts",
    ]);
  });
});
