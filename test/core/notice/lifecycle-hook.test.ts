import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure, Phase } from "../../../src/core/departure/departure.ts";
import {
  hookResult,
  hookStanding,
  type LifecycleHook,
} from "../../../src/core/notice/instance-notice.ts";
import { defaultPolicy, type Policy } from "../../../src/core/policy/policy.ts";
import type { Reason } from "../../../src/core/reason/reason.ts";
import {
  hours,
  instant,
  type Millis,
  millis,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";

const since = instant(Date.UTC(2026, 10, 20, 12));
const machine = "i-0123456789abcdef0";
const spot = { "eks.amazonaws.com/capacityType": "SPOT" };

function node(fields: Partial<NodeFacts> = {}): NodeFacts {
  return {
    name: "n1",
    uid: "u1",
    providerID: `aws:///eu-west-1a/${machine}`,
    labels: spot,
    annotations: {},
    taints: [],
    unschedulable: false,
    ready: true,
    ...fields,
  };
}

function departure(phase: Phase, reason?: Reason): Departure {
  return {
    ...{ name: "n1-u1", uid: "d1", resourceVersion: "1", hold: false },
    node: { name: "n1", uid: "u1" },
    cause: "LifecycleHook",
    status: { phase, reason, timeline: [] },
  };
}

const planned: Departure = { ...departure("Scheduled"), cause: "Planned" };
const releasing: Departure = { ...departure("Releasing"), cause: "Planned" };

function standing(
  transition: LifecycleHook["transition"],
  world: {
    readonly node?: NodeFacts;
    /** Another Node that names the same machine; its departures are those of `u2`. */
    readonly other?: NodeFacts;
    readonly departures?: readonly Departure[];
    readonly after?: Millis;
    readonly onNotice?: Policy["onNotice"];
    readonly longestMs?: Millis;
    readonly joinWithinMs?: Millis;
    readonly inWarmPool?: boolean;
  },
) {
  const { onNotice, longestMs, joinWithinMs, inWarmPool } = world;
  const hook = { transition, machine, group: "spot-asg", name: "drain", at: since, inWarmPool };
  return hookStanding(hook, {
    at: plus(since, world.after ?? seconds(5)),
    policies: [{ ...defaultPolicy, name: "spot", ...(onNotice && { onNotice }) }],
    nodesOf: (id) =>
      id === machine ? [world.node, world.other].filter((one) => one !== undefined) : [],
    departuresOf: (uid) => (world.departures ?? []).filter(({ node }) => node.uid === uid),
    departures: () => world.departures ?? [],
    ...{ longestMs, joinWithinMs },
  });
}

describe("a launch hook", () => {
  it.each([
    ["NoNode", "has not joined", undefined],
    ["Waiting", "has joined and is not ready", node({ ready: false })],
    ["MayGoOn", "is ready", node()],
    ["MayGoOn", "is ready and matches no policy", node({ labels: {} })],
  ])("is %s if the instance %s", (expected, _, joined) => {
    expect(standing("Launching", joined === undefined ? {} : { node: joined })).toBe(expected);
  });
});

describe("a launch hook into a warm pool", () => {
  it.each([
    ["has no node", undefined],
    ["has a node from an earlier time in service", node({ ready: false })],
  ])("may complete at once if the instance %s", (_, joined) => {
    const world = { inWarmPool: true, ...(joined && { node: joined }) };
    expect(standing("Launching", world)).toBe("MayGoOn");
  });

  it("is not abandoned, however long it waits", () => {
    const world = { inWarmPool: true, joinWithinMs: minutes(10) };
    expect(standing("Launching", { ...world, after: hours(1) })).toBe("MayGoOn");
    expect(standing("Launching", { ...world, after: millis(hours(2) + 1) })).toBe("Over");
  });
});

describe("a termination hook", () => {
  it.each([
    ["Waiting", "has not started", [departure("Scheduled")]],
    ["Waiting", "is being marked", [departure("Preparing")]],
    ["Waiting", "is under way", [departure("Draining", "DrainBlocked")]],
    ["MayGoOn", "is over", [departure("Releasing")]],
    ["MayGoOn", "is over, and a later one is planned", [departure("Releasing"), planned]],
    ["MayGoOn", "was a planned one, whose machine was released", [releasing]],
    ["LeftAlone", "is only planned", [planned]],
    // What was only cordoned is drained now, and its status does not say so yet.
    ["Waiting", "has just become a drain", [departure("Draining", "AwaitingMachine")]],
    ["MayGoOn", "is over, after one that ended", [departure("Ended"), departure("Releasing")]],
    [
      "Waiting",
      "is over for one of two departures",
      [departure("Draining"), departure("Releasing")],
    ],
    ["LeftAlone", "was cancelled", [departure("Ended")]],
    ["LeftAlone", "was never requested", []],
  ])("is %s if the drain %s", (expected, _, departures) => {
    expect(standing("Terminating", { node: node(), departures })).toBe(expected);
  });

  it("may complete after the cordon if the policy only cordons", () => {
    const cordoned = { ...departure("Draining", "AwaitingMachine"), cause: "SpotInterruption" };
    const departures = [cordoned as Departure];
    const onNotice = { ...defaultPolicy.onNotice, spotInterruption: "Cordon" as const };
    expect(standing("Terminating", { node: node(), departures, onNotice })).toBe("MayGoOn");
    expect(standing("Terminating", { node: node(), departures })).toBe("Waiting");
  });

  it("may complete if the node is already gone", () => {
    expect(standing("Terminating", {})).toBe("MayGoOn");
  });

  it("waits for the drain of an instance of the warm pool that is a node", () => {
    const world = { inWarmPool: true, node: node() };
    expect(standing("Terminating", { ...world, departures: [departure("Draining")] })).toBe(
      "Waiting",
    );
  });

  it.each([
    ["Waiting", departure("Draining")],
    ["MayGoOn", departure("Releasing")],
  ])("depends on the drain alone if the policy is missing: %s", (expected, leaving) => {
    const unowned = { node: node({ labels: {} }), departures: [leaving] };
    expect(standing("Terminating", unowned)).toBe(expected);
  });
});

const whole = { node: node({ ready: false }), departures: [departure("Draining")] };

it.each([
  ["Launching", "two hours", {}, hours(2)],
  ["Terminating", "two days, by default", {}, hours(48)],
  ["Terminating", "its own limit", { longestMs: hours(3) }, hours(3)],
] as const)("a hook waits for a limited time: %s, %s", (transition, _, limit, longestMs) => {
  expect(standing(transition, { ...whole, ...limit, after: longestMs })).toBe("Waiting");
  expect(standing(transition, { ...whole, ...limit, after: millis(longestMs + 1) })).toBe("Over");
});

describe("a launch hook with a limit of ten minutes for joining", () => {
  const joinWithinMs = minutes(10);

  it.each([
    ["NoNode", "has not joined yet", undefined, minutes(10)],
    ["NeverJoined", "has not joined", undefined, millis(minutes(10) + 1)],
    ["NeverJoined", "is not ready", node({ ready: false }), millis(minutes(10) + 1)],
    ["MayGoOn", "is ready after all", node(), minutes(11)],
    ["Over", "no longer belongs to the group", undefined, millis(hours(2) + 1)],
  ])("is %s if the instance %s", (expected, _, joined, after) => {
    const world = { joinWithinMs, after, ...(joined && { node: joined }) };
    expect(standing("Launching", world)).toBe(expected);
  });
});

describe("a hook that may complete", () => {
  const abandoning: Policy = {
    ...defaultPolicy,
    name: "spot",
    instance: { ...defaultPolicy.instance, lifecycleHook: "Abandon" },
  };
  const other: Policy = { ...defaultPolicy, name: "other", weight: 9 };
  const gone = (over: Partial<Departure["status"]> = {}): Departure => ({
    ...departure("Ended"),
    node: { name: "n1", uid: "u1", providerID: `aws:///eu-west-1a/${machine}` },
    status: {
      ...{ phase: "Ended", outcome: "Preempted", timeline: [] },
      ...{ startedAt: since, policy: "spot", ...over },
    },
  });
  const going = gone({ phase: "Draining", outcome: undefined });
  const unnamed = gone({ policy: undefined });
  const undone = gone({ outcome: "RolledBack" });
  const last = gone({ policy: "other", startedAt: plus(since, hours(1)) });
  const anothers = { ...gone(), node: { name: "n2", uid: "u2", providerID: "aws:///a/i-0" } };
  const byOther: Departure = { ...departure("Releasing"), policy: "other" };

  it.each([
    ["Abandon", "its policy abandons it", node(), [departure("Releasing")], [abandoning]],
    ["Continue", "its policy does not", node(), [departure("Releasing")], [defaultPolicy]],
    ["Continue", "another policy makes it leave", node(), [byOther], [abandoning, other]],
    ["Abandon", "its node is gone, and left under it", undefined, [gone()], [abandoning]],
    ["Abandon", "its node goes before its departure has ended", undefined, [going], [abandoning]],
    [
      "Continue",
      "its node is gone, and its departure names no policy",
      undefined,
      [unnamed],
      [abandoning],
    ],
    ["Continue", "its node is gone, and the policy with it", undefined, [gone()], [defaultPolicy]],
    [
      "Continue",
      "its node is gone, and its departure was undone",
      undefined,
      [undone],
      [abandoning],
    ],
    ["Continue", "the node of another is gone", undefined, [anothers], [abandoning]],
    [
      "Continue",
      "its node left under another policy in the end",
      undefined,
      [gone(), last],
      [abandoning, other],
    ],
    [
      "Continue",
      "only an ended departure was under it",
      node(),
      [departure("Ended")],
      [abandoning],
    ],
  ] as const)("gets the result %s if %s", (expected, _, standingNode, departures, policies) => {
    const scene = {
      policies,
      nodesOf: () => (standingNode ? [standingNode] : []),
      departuresOf: () => departures,
      departures: () => departures,
    };
    const hook = {
      transition: "Terminating",
      machine,
      group: "g",
      name: "drain",
      at: since,
    } as const;
    expect(hookResult(hook, scene)).toBe(expected);
    expect(hookResult({ ...hook, transition: "Launching" }, scene)).toBe("Continue");
    // It is to be used again.
    expect(hookResult({ ...hook, returnsToWarmPool: true }, scene)).toBe("Continue");
  });
});

describe("a hook of a machine that two Nodes name", () => {
  const other = node({ name: "n2", uid: "u2", ready: false });
  const ofOther = (phase: Departure["status"]["phase"]): Departure => ({
    ...departure(phase),
    node: { name: "n2", uid: "u2" },
  });

  it("at launch goes on with the first of them that is ready", () => {
    expect(standing("Launching", { node: node({ ready: false }), other })).toBe("Waiting");
    expect(standing("Launching", { node: node(), other })).toBe("MayGoOn");
    expect(standing("Launching", { node: other, other: node() })).toBe("MayGoOn");
  });

  it.each([
    ["Waiting", [departure("Draining"), ofOther("Releasing")]],
    ["Waiting", [departure("Releasing"), ofOther("Draining")]],
    ["MayGoOn", [departure("Releasing"), ofOther("Releasing")]],
    ["MayGoOn", [departure("Releasing")]],
    ["LeftAlone", []],
  ] as const)("at termination is %s, as the last of their drains: %j", (expected, departures) => {
    expect(standing("Terminating", { node: node(), other, departures })).toBe(expected);
  });
});
