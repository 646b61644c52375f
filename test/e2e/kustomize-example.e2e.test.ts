/** The kustomizations that the pages show: what a reader applies names no image of nobody's. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildControlPlane } from "../controlplane/build.ts";
import { manifestsIn } from "../support/helm.ts";
import { runKubectl } from "../support/kubectl.ts";

const root = join(import.meta.dirname, "../..");
const registry = "registry.example.com/lastcall";

let home: string;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-kustomize-"));
  // A checkout next to the kustomization, and the folder of a checkout around it.
  symlinkSync(root, join(home, "lastcall"));
  symlinkSync(join(root, "deploy"), join(home, "deploy"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** The only kustomization that a page shows. */
function kustomizationOf(page: string): string {
  const blocks = readFileSync(join(root, page), "utf8").matchAll(/```yaml\n([\s\S]*?)```/g);
  const shown = [...blocks].flatMap(([, block = ""]) => (/^images:/m.test(block) ? [block] : []));
  expect(shown).toHaveLength(1);
  return shown[0] ?? "";
}

async function kustomized(text: string) {
  writeFileSync(join(home, "kustomization.yaml"), text);
  const { stdout, stderr, code } = await runKubectl({
    command: buildControlPlane().controlplane,
    args: ["kustomize", home],
    ...{ kubeconfig: "/dev/null", home, signal: new AbortController().signal },
  });
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return manifestsIn(stdout);
}

describe("the kustomization", () => {
  test.each(["README.md", "README.ja.md", "docs/running.md"])(
    "in %s installs both parts with the images of the reader's registry",
    async (page) => {
      const objects = await kustomized(kustomizationOf(page));
      const images = [...objects.values()].flatMap((object) =>
        [...JSON.stringify(object).matchAll(/"image":"([^"]*)"/g)].map(([, image]) => image),
      );
      expect(images.toSorted()).toEqual([
        `${registry}/lastcall-agent:0.1.0`,
        `${registry}/lastcall:0.1.0`,
      ]);
    },
  );

  test("in README.md contains what docs/operations.md says that its deletion deletes", async () => {
    const uninstall = readFileSync(join(root, "docs/operations.md"), "utf8").split(
      "\n## Uninstall",
    )[1];
    expect(uninstall).toContain("`deploy/base` contains the definitions and the namespace");
    const objects = await kustomized(kustomizationOf("README.md"));
    const deleted = [...objects.keys()].filter((key) => /^(Namespace|CustomRes\S+) /.test(key));
    expect(deleted.toSorted()).toEqual([
      "CustomResourceDefinition /departurepolicies.lastcall.dev",
      "CustomResourceDefinition /departures.lastcall.dev",
      "Namespace /lastcall",
    ]);
  });
});
