import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { withLaunchTimes } from "../../../src/core/departure/launch-time.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { defaultPolicy } from "../../../src/core/policy/policy.ts";
import { hours, instant, minutes, plus } from "../../../src/core/time/time.ts";
import { decided, departure, now as sceneAt, node as sceneNode, world } from "../decide-scene.ts";

const now = instant(Date.UTC(2026, 10, 20, 12));
const endedAt = plus(now, minutes(-5));

/** A Node object that is two days old and has its second machine. */
const node: NodeFacts = {
  name: "n1",
  uid: "0123456789abcdef",
  providerID: "gce://p/z/n1",
  bootID: "second",
  labels: { "cloud.google.com/gke-preemptible": "true" },
  annotations: {},
  taints: [],
  unschedulable: false,
  ready: true,
  createdAt: plus(now, hours(-48)),
};

function departureOf(bootID: string): Departure {
  return {
    name: "n1-01234567",
    uid: "d1",
    resourceVersion: "1",
    node: { name: "n1", uid: node.uid, providerID: node.providerID, bootID },
    cause: "Planned",
    policy: "spot",
    departAt: plus(now, minutes(-10)),
    hold: false,
    status: { phase: "Ended", outcome: "Planned", endedAt, timeline: [] },
  };
}

describe("the launch time that the planner recorded", () => {
  const launchedAt = plus(now, hours(-30));
  const recorded: Departure = {
    ...{ ...departureOf("second"), launchedAt },
    status: { phase: "Scheduled", timeline: [] },
  };

  it("is that of the machine, however old its Node object is", () => {
    expect(withLaunchTimes([node], [recorded])[0]?.instanceBornAt).toBe(launchedAt);
  });

  it("counts for every reader of the plan, whatever the policies are by now", () => {
    const lifetime = { minMs: hours(0), maxMs: hours(72), reserveMs: minutes(30) };
    const plan = planFleet({
      policies: [{ ...defaultPolicy, name: "other", lifetime }],
      badPolicies: [],
      nodes: [node],
      departures: [recorded],
      at: now,
    });
    expect(plan.policies[0]?.departures[0]?.deadlineAt).toBe(plus(launchedAt, hours(71.5)));
  });

  it("is recorded with the deadline that counts from it, if the cloud has reported it", () => {
    const instanceBornAt = plus(sceneAt, hours(-3));
    const nodes = [sceneNode({ instanceBornAt })];
    const [made] = decided(world({ nodes }));
    expect(made).toMatchObject({ kind: "Schedule", order: { launchedAt: instanceBornAt } });
    const departures = [departure({ deadlineAt: plus(sceneAt, hours(1)) })];
    const [moved] = decided(world({ nodes, departures }));
    expect(moved).toMatchObject({ kind: "Move", launchedAt: instanceBornAt });
    const [unknown] = decided(world());
    expect(unknown).toMatchObject({ kind: "Schedule", order: { launchedAt: undefined } });
  });

  it("is not that of the next machine", () => {
    const former = { ...recorded, node: { ...recorded.node, bootID: "first" } };
    expect(withLaunchTimes([node], [former])).toEqual([node]);
  });

  it("yields to what the cloud reports", () => {
    const told = { ...node, instanceBornAt: plus(now, hours(-1)) };
    expect(withLaunchTimes([told], [recorded])).toEqual([told]);
  });
});

describe("a machine that took over the Node object of its predecessor", () => {
  it("was launched no earlier than its predecessor's departure ended", () => {
    const [found] = withLaunchTimes([node], [departureOf("first")]);
    expect(found?.instanceBornAt).toBe(endedAt);
  });

  it("was launched when the cloud says, if it says so", () => {
    const told = { ...node, instanceBornAt: plus(endedAt, minutes(-2)) };
    expect(withLaunchTimes([told], [departureOf("first")])).toEqual([told]);
  });

  it("has its own lifetime in the plan, instead of being overdue forever", () => {
    const lifetime = { minMs: hours(0), maxMs: hours(24), reserveMs: minutes(30) };
    const plan = planFleet({
      policies: [{ ...defaultPolicy, name: "spot", lifetime }],
      badPolicies: [],
      nodes: [node],
      departures: [departureOf("first")],
      at: now,
    });
    expect(plan.policies[0]?.departures[0]).toMatchObject({
      reason: "Spaced",
      bornFrom: "Instance",
      bornAt: endedAt,
      deadlineAt: plus(endedAt, hours(23.5)),
    });
  });

  it("is not assumed if the machine of the ended departure is still there", () => {
    expect(withLaunchTimes([node], [departureOf("second")])).toEqual([node]);
  });
});
