import { describe, expect, it } from "vitest";
import type { DepartureStatus } from "../../../src/core/departure/departure.ts";
import { statusObject, translateDeparture } from "../../../src/kube/object/translate-departure.ts";
import { aDeparture, aNode, at } from "../../core/fleet-builder.ts";

/** Every field: without a new one here, the test does not compile. */
const status: Required<DepartureStatus> = {
  phase: "Ended",
  outcome: "Forced",
  reason: "Released",
  message: "n1 is drained, and its machine is released.",
  startedAt: at("2026-11-20T12:00:00Z"),
  endedAt: at("2026-11-20T12:05:00Z"),
  nodeCreatedAt: at("2026-11-19T12:00:00Z"),
  machine: { id: "i-1", mode: "Recreate" },
  releasingSeconds: 120,
  drain: { total: 3, left: 0, evicted: 2, forced: 1, waiting: 0, blocked: 0, cut: 0 },
  demands: [{ budget: "default/web", pods: 2, disruptionsAllowed: 1 }],
  actions: [
    {
      ...{ name: "targets", kind: "deregisterTargets", at: "AtNotice", state: "Done" },
      ...{ startedAt: at("2026-11-20T12:00:01Z"), seconds: 3, attempts: 1 },
    },
  ],
  policy: "spot",
  leftTo: "Karpenter",
  timeline: [{ at: at("2026-11-20T12:00:00Z"), step: "Preparing", result: "Due: n1 leaves." }],
};

describe("the status of a departure", () => {
  it("is read back by the next leader as it was written", () => {
    const { name, uid } = aDeparture(aNode("n1"));
    const written = JSON.parse(JSON.stringify(statusObject(status)));
    const spec = { node: { name: "n1", uid: "u1" }, cause: "Planned" };
    const read = translateDeparture({ metadata: { name, uid }, spec, status: written });
    expect(read?.status).toEqual(status);
  });
});
