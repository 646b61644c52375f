/**
 * Whether a workload on several nodes ends as a whole, the controller reads from an object where
 * the pods do not say it, with its own rights, and so does the audit.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  coschedulingPodGroup,
  type GangObjectKind,
  gangObjectKinds,
  leaderWorkerSet,
  volcanoJob,
  volcanoPodGroup,
} from "../../src/core/cluster/gang-object.ts";
import { runLastcall } from "../support/lastcall-process.ts";
import { generationLabel } from "./cloud.ts";
import { FleetWorld } from "./fleet-world.ts";
import { mustRun } from "./must-run.ts";

const whole = ["spot-1", "spot-2"];
const loose = ["spot-3", "spot-4"];

const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

const definitions = gangObjectKinds.map(({ kind, group, version, resource }) => ({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: {
    name: `${resource}.${group}`,
    // Required for groups of k8s.io.
    annotations: { "api-approved.kubernetes.io": "unapproved, a stand-in for a test" },
  },
  spec: {
    group,
    scope: "Namespaced",
    names: { kind, plural: resource },
    versions: [
      { name: version, served: true, storage: true, schema: { openAPIV3Schema: anything } },
    ],
  },
}));

interface Workload {
  readonly of: GangObjectKind;
  readonly marks: (name: string) => object;
  /** Of an object whose pods end together, and of one that goes on. */
  readonly whole: object;
  readonly loose: object;
}

const workloads: readonly Workload[] = [
  {
    of: volcanoJob,
    marks: (name) => ({ labels: { "volcano.sh/job-name": name } }),
    ...{ whole: { minAvailable: 2 }, loose: { minAvailable: 1 } },
  },
  {
    of: leaderWorkerSet,
    marks: (name) => ({ labels: { "leaderworkerset.sigs.k8s.io/name": name } }),
    whole: { leaderWorkerTemplate: { size: 2, restartPolicy: "RecreateGroupOnPodRestart" } },
    loose: { leaderWorkerTemplate: { size: 2, restartPolicy: "None" } },
  },
  {
    of: volcanoPodGroup,
    marks: (name) => ({ annotations: { "scheduling.k8s.io/group-name": `volcano-${name}` } }),
    ...{ whole: { minMember: 2 }, loose: { minMember: 1 } },
  },
  {
    of: coschedulingPodGroup,
    marks: (name) => ({ labels: { "scheduling.x-k8s.io/pod-group": name } }),
    ...{ whole: { minMember: 2 }, loose: { minMember: 1 } },
  },
];

let world: FleetWorld;

beforeAll(async () => {
  world = await FleetWorld.start();
  const items = (list: readonly object[]) => ({ apiVersion: "v1", kind: "List", items: list });
  await mustRun(world.plane, ["apply", "-f", "-"], items(definitions));
  const names = definitions.map(({ metadata }) => `crd/${metadata.name}`);
  await mustRun(world.plane, ["wait", "--for=condition=Established", ...names]);
  for (const workload of workloads) {
    const objects = [
      ...[objectOf(workload, "whole"), ...whole.map((node) => podOf(workload, "whole", node))],
      ...[objectOf(workload, "loose"), ...loose.map((node) => podOf(workload, "loose", node))],
    ];
    await mustRun(world.plane, ["apply", "-f", "-"], items(objects));
  }
});
afterAll(() => world?.stop());

type Name = "whole" | "loose";

function objectOf(workload: Workload, name: Name): object {
  const { group, version, kind } = workload.of;
  const prefix = workload.of === volcanoPodGroup ? "volcano-" : "";
  const metadata = { name: `${prefix}${name}` };
  return { apiVersion: `${group}/${version}`, kind, metadata, spec: workload[name] };
}

function podOf({ of, marks }: Workload, name: Name, nodeName: string): object {
  return {
    ...{ apiVersion: "v1", kind: "Pod" },
    metadata: { name: `${name}-${of.group}-on-${nodeName}`, ...marks(name) },
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

test("the audit of the cluster reports only the workloads that end as a whole", async () => {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-audit-"));
  const args = ["audit", "--kubeconfig", world.plane.kubeconfig, "-o", "json"];
  const { code, stdout } = await runLastcall([...args, "--fail-on", "never"], { folder });
  rmSync(folder, { recursive: true });

  expect(code).toBe(0);
  const { findings } = JSON.parse(stdout) as { findings: { rule: string; message: string }[] };
  const gangs = findings.filter(({ rule }) => rule === "gang-on-spot");
  const told = gangs.map(({ message }) => /\((.+? default\/\S+)\)/.exec(message)?.[1]);
  expect(told.sort()).toEqual([
    ...["LeaderWorkerSet default/whole", "Volcano Job default/whole"],
    ...["pod group default/volcano-whole", "pod group default/whole"],
  ]);
});

test("nodes with pods of such workloads leave only if each goes on without one", async () => {
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
  const held = "LeaderWorkerSet default/whole on spot-1, spot-2";
  for (const node of whole) {
    await world.until(`${node} has been held`, async () => {
      const { timeline = [] } = (await statusOf(node)) ?? {};
      return timeline.some(({ step, result }) => step === "Held" && result.includes(held));
    });
    expect((await statusOf(node))?.outcome).toBeUndefined();
  }
}, 180_000);
