import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { compileCache } from "../support/compile-cache.ts";

/** The examples of docs/audit for CI, run as they are written there. */

const page = readFileSync("docs/audit/README.md", "utf8");

/** The YAML of the code block that starts with the name of this file. */
function example<Shape>(file: string): Shape {
  const found = new RegExp(`\`\`\`yaml\n# ${file}\n(.*?)\`\`\``, "s").exec(page)?.[1];
  if (found === undefined) throw new Error(`docs/audit/README.md has no ${file}`);
  return parse(found) as Shape;
}

interface Step {
  readonly name?: string;
  readonly uses?: string;
  readonly run?: string;
}

interface Workflow {
  readonly on: unknown;
  readonly jobs: {
    readonly audit: { readonly "runs-on": string; readonly steps: readonly Step[] };
  };
}

interface PreCommit {
  readonly repos: readonly {
    readonly repo: string;
    readonly hooks: readonly { readonly entry: string; readonly files: string }[];
  }[];
}

function deployment(name: string, graceSeconds: number): string {
  return `apiVersion: apps/v1
kind: Deployment
metadata:
  name: ${name}
spec:
  replicas: 2
  template:
    spec:
      terminationGracePeriodSeconds: ${graceSeconds}
      containers: [{name: ${name}, image: ${name}}]
`;
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-ci-"));
  for (const name of ["bin", "k8s", "rendered"]) mkdirSync(join(folder, name));
  const main = resolve("src/cli/main.ts");
  writeFileSync(join(folder, "bin/lastcall"), `#!/bin/sh\nexec node '${main}' "$@"\n`);
  chmodSync(join(folder, "bin/lastcall"), 0o755);
  writeFileSync(join(folder, "k8s/web.yaml"), `---\n${deployment("web", 60)}`);
  writeFileSync(join(folder, "rendered/chart.yaml"), deployment("kafka", 600));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(command: string) {
  const env = {
    ...process.env,
    ...compileCache,
    PATH: `${join(folder, "bin")}${delimiter}${process.env.PATH}`,
  };
  return spawnSync("sh", ["-c", command], { cwd: folder, env, encoding: "utf8" });
}

describe("the GitHub workflow", () => {
  const { on, jobs } = example<Workflow>(".github/workflows/audit.yaml");
  const { steps, "runs-on": runner } = jobs.audit;
  const audits = steps.flatMap(({ run: command }) => command ?? []).slice(1);

  it("has a trigger, a runner, and steps that each do one thing", () => {
    expect([on, runner]).toEqual(["pull_request", "ubuntu-latest"]);
    for (const step of steps) expect([step.uses, step.run].filter(Boolean)).toHaveLength(1);
  });

  it("annotates the field of our own manifest, and fails", () => {
    const { stdout, status } = run(audits[0] ?? "");
    const line = `${readFileSync(join(folder, "k8s/web.yaml"), "utf8")}`
      .split("\n")
      .findIndex((one) => one.includes("terminationGracePeriodSeconds"));
    expect(stdout).toMatch(
      new RegExp(`^::error file=k8s/web.yaml,line=${line + 1},title=grace-cut::`),
    );
    expect(status).toBe(3);
  });

  it("passes a chart that names no Spot nodes, and says that it was not judged", () => {
    const { stdout, stderr, status } = run(audits[1] ?? "");
    expect(status).toBe(0);
    expect(stdout).toBe(
      "::notice title=out-of-scope::The workload was not judged, because it names no Spot nodes: Deployment default/kafka. Judge all with --scope Possible\n",
    );
    expect(stderr).toContain("None of 1 workload names Spot nodes, and only such are judged");
  });
});

describe("the pre-commit hook", () => {
  const [hook] = example<PreCommit>(".pre-commit-config.yaml").repos.flatMap(({ hooks }) => hooks);

  it("runs for the manifests that it audits", () => {
    const files = new RegExp(hook?.files ?? "");
    expect(["k8s/web.yaml", "k8s/a/b.yml", "README.md"].map((one) => files.test(one))).toEqual([
      ...[true, true, false],
    ]);
  });

  it("fails for a manifest that asks for more than it gets", () => {
    const { stdout, status } = run(hook?.entry ?? "");
    expect(stdout).toContain("Deployment default/web");
    expect(status).toBe(3);
  });
});
