/** What the chart's notes say of the cluster in which it is installed, on a real API server. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "../../tools/source-tree.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { chart, helm } from "../support/helm.ts";
import { mustRun } from "./must-run.ts";

let plane: ControlPlane;
let home: string;

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "lastcall-notes-"));
  plane = await startControlPlane({ withKwok: false, withScheduler: false });
  await mustRun(plane, ["create", "namespace", "lastcall"]);
  // A dry run installs none, and the killer's values make a policy.
  await mustRun(plane, ["apply", "-k", join(root, "deploy/crds")]);
});
afterAll(async () => {
  await plane?.stop();
  rmSync(home, { recursive: true, force: true });
});

function notesWith(...set: readonly string[]): string {
  const flags = [
    "--namespace",
    "lastcall",
    "--dry-run=server",
    ...set.map((one) => `--set=${one}`),
  ];
  const { kubeconfig } = plane;
  const { stdout, stderr, code } = helm(["install", "lastcall", chart, ...flags], {
    home,
    kubeconfig,
  });
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return stdout.slice(stdout.indexOf("NOTES:"));
}

/** Every cluster of GKE serves this resource, unless its load balancing is switched off. */
async function likeGke(): Promise<void> {
  const [group, plural] = ["cloud.google.com", "backendconfigs"];
  const schema = { openAPIV3Schema: { type: "object" } };
  const versions = [{ name: "v1", served: true, storage: true, schema }];
  await mustRun(plane, ["apply", "-f", "-"], {
    ...{ apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition" },
    metadata: { name: `${plural}.${group}` },
    spec: { group, names: { kind: "BackendConfig", plural }, scope: "Namespaced", versions },
  });
  await mustRun(plane, ["wait", "--for=condition=Established", `crd/${plural}.${group}`]);
}

test("the notes say on GKE that Autopilot rejects the agents, and what to set there", async () => {
  const rejected = "GKE Autopilot rejects the agents";
  const account =
    "secret.workloadIdentityServiceAccount=killer@my-project-1.iam.gserviceaccount.com";
  expect(notesWith()).not.toContain("Autopilot");
  expect(notesWith("agent.enabled=false")).not.toContain("Autopilot");
  expect(notesWith(account)).toContain(rejected);
  await likeGke();
  const notes = notesWith();
  expect(notes).toContain(rejected);
  expect(notes).toContain("agent.enabled=false: docs/cloud/gcp.md#autopilot");
  const without = notesWith("agent.enabled=false");
  expect(without).not.toContain(rejected);
  expect(without).toContain("What remains on GKE Autopilot: docs/cloud/gcp.md#autopilot.");
});
