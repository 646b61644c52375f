import { describe, expect, it } from "vitest";
import { sliceOf } from "../../../src/core/cluster/slice.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { explainPlan } from "../../../src/core/plan/plan-report.ts";
import { aNode, aPolicy, at } from "../fleet-builder.ts";

type Labels = Readonly<Record<string, string>>;

describe("a machine that its cloud replaces with others", () => {
  const pool = { "cloud.google.com/gke-nodepool": "tpu" };
  const slice = (topology: string, chips?: string): Labels => ({
    ...pool,
    "cloud.google.com/gke-tpu-topology": topology,
    ...(chips !== undefined && { "cloud.google.com/gke-accelerator-count": chips }),
  });

  it.each<[string, Labels, Readonly<Record<string, number>> | undefined, string | undefined]>([
    ["a host of several", slice("2x2x2", "4"), undefined, "the TPU slice 2x2x2 of node pool tpu"],
    [
      "by its allocatable",
      slice("4x4"),
      { "google.com/tpu": 4 },
      "the TPU slice 4x4 of node pool tpu",
    ],
    ["the only host", slice("2x4", "8"), undefined, undefined],
    ["the only host, by its allocatable", slice("2x2"), { "google.com/tpu": 4 }, undefined],
    // What cannot be read counts as one of several.
    ["of unknown size", slice("2x2"), {}, "the TPU slice 2x2 of node pool tpu"],
    ["of unknown topology", slice("large", "4"), {}, "the TPU slice large of node pool tpu"],
    [
      "of queued provisioning",
      { ...pool, "cloud.google.com/gke-queued": "true" },
      undefined,
      "the queued provisioning of node pool tpu",
    ],
    [
      "of a named request",
      { ...pool, "autoscaling.gke.io/provisioning-request": "train-a1" },
      undefined,
      "the provisioning request train-a1 of node pool tpu",
    ],
    // Flex-start alone creates each node by itself.
    ["of flex-start", { ...pool, "cloud.google.com/gke-flex-start": "true" }, undefined, undefined],
    ["without labels", {}, undefined, undefined],
  ])("%s", (_, labels, allocatable, found) => {
    expect(sliceOf({ labels, allocatable })).toBe(found);
  });

  it.each([
    [
      "Hold",
      "n1 does not leave on its own, because that would end others with it: the TPU slice 4x4 of node pool tpu",
    ],
    ["Allow", "n1 departs"],
  ] as const)("is planned by the policy's rule %s", (gangWorkloads, expected) => {
    const labels = { "cloud.google.com/gke-spot": "true", ...slice("4x4", "4") };
    const plan = planFleet({
      nodes: [aNode("n1", { labels })],
      policies: [aPolicy({ gates: { blockingPods: [], gangWorkloads } })],
      ...{ departures: [], badPolicies: [], at: at("2026-11-20T12:00:00Z") },
    });
    expect([
      ...plan.notPlanned.map((one) =>
        explainPlan(one.reason, { node: one.node.name, detail: one.detail }),
      ),
      ...plan.policies.flatMap((one) => one.departures.map(({ node }) => `${node.name} departs`)),
    ]).toEqual([expected]);
  });
});
