import { describe, expect, it } from "vitest";
import { departureSummary, templateFacts } from "../../../src/core/action/action-plan.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { at } from "../fleet-builder.ts";

const departure: Departure = {
  ...{ name: "n1-2b9e5d3c", uid: "u", resourceVersion: "1", hold: false, policy: "spot" },
  node: { name: "n1", uid: "2b9e5d3c", providerID: "aws:///eu-west-1a/i-0abc" },
  cause: "SpotInterruption",
  noticedAt: at("2026-11-24T12:00:00Z"),
  deadlineAt: at("2026-11-24T12:02:00Z"),
  status: {
    phase: "Ended",
    outcome: "Preempted",
    drain: {
      ...{ total: 12, left: 0, evicted: 11, forced: 2, waiting: 0, blocked: 0, cut: 2 },
      forcedPods: [{ namespace: "shop", name: "db-0", reason: "ForcedAtDeadline" }],
      notClean: [
        { namespace: "shop", name: "web-1", outcome: "Killed" },
        { namespace: "shop", name: "db-0", outcome: "LeftBehind" },
      ],
    },
    actions: [
      {
        ...{ name: "targets", kind: "deregisterTargets", at: "AtNotice", state: "Done" },
        ...{ attempts: 1, seconds: 4.25, startedAt: at("2026-11-24T12:00:00.050Z") },
        detail: "deregistered from 3 target groups",
      },
      { name: "tell", kind: "slack", at: "AtEnd", state: "Pending", attempts: 0 },
      {
        ...{ name: "mute", kind: "alertmanagerSilence", at: "AtNotice", state: "Failed" },
        ...{ attempts: 4, seconds: 12, startedAt: at("2026-11-24T12:00:00.051Z") },
        ...{ result: "ACTION_UNREACHABLE", detail: "Cannot silence: found 500" },
      },
    ],
    timeline: [
      { at: at("2026-11-24T12:00:00.040Z"), step: "Preparing", result: "Noticed: n1 leaves." },
      { at: at("2026-11-24T12:01:10Z"), step: "Releasing", result: "Drained: n1 is drained." },
    ],
  },
};

describe("the summary of a departure", () => {
  it("states who and why, each step in order with its time and seconds, and the pods", () => {
    expect(departureSummary(departure)).toBe(
      [
        "n1 has left: SpotInterruption, instance i-0abc, policy spot, deadline 2026-11-24T12:02:00.000Z, outcome Preempted, failed: mute",
        "2026-11-24T12:00:00.040Z +0.0s Noticed: n1 leaves.",
        "2026-11-24T12:00:00.050Z +0.1s action targets (deregisterTargets) Done in 4.3 s: deregistered from 3 target groups",
        "2026-11-24T12:00:00.051Z +0.1s action mute (alertmanagerSilence) Failed (ACTION_UNREACHABLE) in 12.0 s: Cannot silence: found 500",
        "2026-11-24T12:01:10.000Z +70.0s Drained: n1 is drained.",
        "pods: 12 in total, 11 evicted, 2 deleted without eviction, 2 cut short, 0 left",
        "deleted without eviction: shop/db-0 and 1 more",
        "killed at the end of their grace period: shop/web-1",
        "left behind: shop/db-0",
      ].join("\n"),
    );
  });

  it("of one that has just started states what is known", () => {
    const { drain: _, actions: __, outcome: ___, ...status } = departure.status;
    const fresh = { ...departure, policy: undefined, deadlineAt: undefined };
    expect(departureSummary({ ...fresh, status: { ...status, timeline: [] } })).toBe(
      "n1 leaves: SpotInterruption, instance i-0abc",
    );
  });

  it.each([
    ["Planned", "has left"],
    ["Expired", "has left"],
    ["Forced", "has left"],
    ["RolledBack", "stays"],
    ["Cancelled", "stays"],
    ["Failed", "stays"],
  ] as const)("that ended as %s says that the node %s", (outcome, verb) => {
    const ended = { ...departure, status: { ...departure.status, outcome } };
    expect(departureSummary(ended)).toMatch(new RegExp(`^n1 ${verb}: .*outcome ${outcome}`));
  });

  it("does not repeat the machine's name if the Node has the same name", () => {
    const node = { ...departure.node, providerID: "gce://project/europe-west1-b/n1" };
    expect(departureSummary({ ...departure, node })).not.toContain("instance");
  });
});

describe("the facts for a template", () => {
  it.each([
    ["aws:///eu-west-1a/i-0abc", "i-0abc"],
    ["gce://project/europe-west1-b/gke-spot-1", "gke-spot-1"],
    [
      "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm-1",
      "vm-1",
    ],
    ["kind://x", ""],
    [undefined, ""],
  ])("name the machine for the providerID %s", (providerID, instanceId) => {
    const node = { ...departure.node, providerID };
    expect(templateFacts({ ...departure, node }, "spot")).toMatchObject({
      ...{ node: "n1", instanceId, providerID: providerID ?? "", outcome: "Preempted" },
      ...{ deadline: "2026-11-24T12:02:00.000Z", policy: "spot", departure: "n1-2b9e5d3c" },
    });
  });
});
