/**
 * Whether a Volcano Job ends as a whole, the controller reads from the Job itself, with its own
 * rights, and so does the audit: its pods do not say.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runLastcall } from "../support/lastcall-process.ts";
import { generationLabel } from "./cloud.ts";
import { FleetWorld } from "./fleet-world.ts";
import { mustRun } from "./must-run.ts";

const whole = ["spot-1", "spot-2"];
const loose = ["spot-3", "spot-4"];

const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

const volcanoJobs = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "jobs.batch.volcano.sh" },
  spec: {
    group: "batch.volcano.sh",
    scope: "Namespaced",
    names: { kind: "Job", plural: "jobs" },
    versions: [
      { name: "v1alpha1", served: true, storage: true, schema: { openAPIV3Schema: anything } },
    ],
  },
};

let world: FleetWorld;

beforeAll(async () => {
  world = await FleetWorld.start();
  await mustRun(world.plane, ["apply", "-f", "-"], volcanoJobs);
  await mustRun(world.plane, ["wait", "--for=condition=Established", "crd/jobs.batch.volcano.sh"]);
  for (const [name, minAvailable, nodes] of [
    ["whole", 2, whole],
    ["loose", 1, loose],
  ] as const) {
    const job = { apiVersion: "batch.volcano.sh/v1alpha1", kind: "Job", metadata: { name } };
    const items = [{ ...job, spec: { minAvailable } }, ...nodes.map((node) => podOf(name, node))];
    await mustRun(world.plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "List", items });
  }
});
afterAll(() => world?.stop());

function podOf(job: string, nodeName: string): object {
  return {
    ...{ apiVersion: "v1", kind: "Pod" },
    metadata: { name: `${job}-on-${nodeName}`, labels: { "volcano.sh/job-name": job } },
    spec: { nodeName, containers: [{ name: "main", image: "registry.example/main:1" }] },
  };
}

async function statusOf(node: string) {
  const all = await world.departures();
  return all.find(({ spec }) => spec?.node?.name === node)?.status as
    | {
        readonly outcome?: string;
        readonly timeline?: readonly { readonly step: string; readonly result: string }[];
      }
    | undefined;
}

test("the audit of the cluster reports only the Job that ends as a whole", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-audit-"));
  const args = ["audit", "--kubeconfig", world.plane.kubeconfig, "-o", "json"];
  const { code, stdout } = await runLastcall([...args, "--fail-on", "never"], { folder });
  rmSync(folder, { recursive: true });

  expect(code).toBe(0);
  const { findings } = JSON.parse(stdout) as { findings: { rule: string; message: string }[] };
  const gangs = findings.filter(({ rule }) => rule === "gang-on-spot");
  expect(gangs.map(({ message }) => message)).toEqual([
    expect.stringContaining("(Volcano Job default/whole)"),
  ]);
});

test("nodes with pods of a Volcano Job leave only if it needs one pod", async () => {
  await world.startController(await world.controllerKubeconfig());
  const matchExpressions = [
    { key: "kubernetes.io/hostname", operator: "In", values: [...whole, ...loose] },
    // Not their replacements, which have the same names.
    { key: generationLabel, operator: "In", values: ["1"] },
  ];
  await world.applyPolicy({
    nodeSelector: { nodeSelectorTerms: [{ matchExpressions }] },
    // All of them are overdue.
    ...{ lifetime: { max: "2s", reserve: "1s" }, spacing: { min: "1s" } },
    ...{ replacement: { when: "None" }, drain: { timeout: "2m", onTimeout: "Wait" } },
  });
  // The second one leaves when its predecessor's machine is back, with a Job that is on one node.
  await world.until("one of the nodes that may leave has left", async () => {
    const all = await Promise.all(loose.map(statusOf));
    return all.some((status) => status?.outcome === "Planned");
  });
  // Afterwards one may wait for the distance to that departure instead.
  const held = "Volcano Job default/whole on spot-1, spot-2";
  for (const node of whole) {
    await world.until(`${node} has been held`, async () => {
      const { timeline = [] } = (await statusOf(node)) ?? {};
      return timeline.some(({ step, result }) => step === "Held" && result.includes(held));
    });
    expect((await statusOf(node))?.outcome).toBeUndefined();
  }
}, 180_000);
