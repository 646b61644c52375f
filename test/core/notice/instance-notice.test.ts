import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure, Outcome } from "../../../src/core/departure/departure.ts";
import { resolveNotice } from "../../../src/core/notice/instance-notice.ts";
import type { Notice, NoticeCause } from "../../../src/core/notice/notice.ts";
import type { Cause } from "../../../src/core/policy/action.ts";
import { defaultPolicy } from "../../../src/core/policy/policy.ts";
import { hours, instant, millis, minutes, plus, seconds } from "../../../src/core/time/time.ts";

const eventAt = instant(Date.UTC(2026, 10, 20, 12));
const nowAt = plus(eventAt, seconds(5));
const deadlineAt = plus(eventAt, seconds(30));

const gone: Notice = {
  cause: "Preempted",
  deadlineAt,
  noticedAt: eventAt,
  source: "gcp/operations",
  eventId: "operation-1",
};

function node(fields: Partial<NodeFacts> = {}): NodeFacts {
  return {
    name: "n1",
    uid: "0123456789abcdef",
    providerID: "gce://p/z/n1",
    bootID: "boot-1",
    labels: { "cloud.google.com/gke-spot": "true" },
    annotations: {},
    taints: [],
    unschedulable: false,
    ready: true,
    createdAt: plus(eventAt, hours(-20)),
    ...fields,
  };
}

type Fields = Partial<Departure> & { readonly phase?: Departure["status"]["phase"] };

function departure({ phase = "Scheduled", status, ...rest }: Fields): Departure {
  return {
    name: "n1-01234567",
    uid: "d1",
    resourceVersion: "1",
    node: { name: "n1", uid: "0123456789abcdef", bootID: "boot-1" },
    cause: "Planned",
    deadlineAt: plus(eventAt, hours(3)),
    hold: false,
    status: { phase, timeline: [], ...status },
    ...rest,
  };
}

function ended(outcome: Outcome, endedAt: Departure["status"]["endedAt"], fields: Fields = {}) {
  const status = { phase: "Ended", outcome, endedAt, timeline: [] } as const;
  return departure({ ...fields, status });
}

function meaning(world: {
  node?: NodeFacts;
  departures?: readonly Departure[];
  notice?: Notice;
  machine?: string;
  at?: typeof nowAt;
}) {
  const { departures = [], notice = gone, machine = "gce://p/z/n1", at = nowAt } = world;
  const policies = [{ ...defaultPolicy, name: "spot" }];
  const one = world.node ?? node();
  return resolveNotice(
    { notice },
    {
      ...{ policies, at },
      // The fleet knows which nodes a machine has: test/kube/fleet.test.ts.
      node: one.providerID?.endsWith(machine) ? one : undefined,
      departuresOf: (uid) => departures.filter((former) => former.node.uid === uid),
      departureNamed: (name) => departures.find((former) => former.name === name),
    },
  );
}

describe("a cloud notice about a machine", () => {
  it("creates a departure of the machine's node", () => {
    expect(meaning({})).toMatchObject({
      kind: "Make",
      order: {
        name: "n1-01234567",
        node: { name: "n1", bootID: "boot-1" },
        cause: "Preempted",
        deadlineAt,
        noticedAt: eventAt,
        source: "gcp/operations/operation-1",
      },
    });
  });

  it.each([
    ["SpotInterruption", "Make"],
    ["LifecycleHook", "Make"],
    ["Preempted", "NoNode"],
    ["NodeShutdown", "NoNode"],
  ] as const)("with cause %s, about an EC2 machine older than its Node: %s", (cause, kind) => {
    const young = node({ providerID: "aws:///eu-west-1a/i-0abc", createdAt: nowAt });
    const notice = { ...gone, cause };
    expect(meaning({ node: young, machine: "i-0abc", notice }).kind).toBe(kind);
  });

  it.each([
    ["with a deadline, five minutes after it", gone, 330, "Make", "Stale"],
    [
      "of maintenance, two hours after its start, the longest window on EC2",
      { ...gone, cause: "ScheduledMaintenance" },
      7230,
      "Make",
      "Stale",
    ],
    [
      "of a shutdown, five minutes after the event",
      { ...gone, cause: "NodeShutdown", deadlineAt: undefined },
      300,
      "Make",
      "Stale",
    ],
    [
      "of a hook, two days after the event, the longest that it can be extended",
      { ...gone, cause: "LifecycleHook", deadlineAt: undefined },
      172_800,
      "Make",
      "Stale",
    ],
    [
      "of a recommendation, an hour after the event",
      { ...gone, cause: "RebalanceRecommendation", deadlineAt: undefined },
      3600,
      "Make",
      "Stale",
    ],
  ] as const)("%s, expires", (_, notice, lastSecond, before, after) => {
    const lastAt = plus(eventAt, seconds(lastSecond));
    expect(meaning({ notice, at: lastAt }).kind).toBe(before);
    expect(meaning({ notice, at: plus(lastAt, millis(1)) }).kind).toBe(after);
  });

  it("of maintenance is too early until two hours before it", () => {
    const beginsAt = plus(eventAt, hours(30));
    const notice = { ...gone, cause: "ScheduledMaintenance", deadlineAt: beginsAt } as const;
    const nearAt = plus(beginsAt, hours(-2));
    expect(meaning({ notice, at: plus(nearAt, millis(-1)) }).kind).toBe("TooEarly");
    expect(meaning({ notice, at: nearAt }).kind).toBe("Make");
    expect(meaning({ notice, machine: "gce://p/z/n2" }).kind).toBe("NoNode");
  });

  it.each([
    ["no node belongs to the machine", node({ providerID: "gce://p/z/n2" }), "NoNode"],
    ["a node without a providerID has the name", node({ providerID: undefined }), "NoNode"],
    ["the Node was created after the event", node({ createdAt: nowAt }), "NoNode"],
    ["the machine was launched after the event", node({ instanceBornAt: nowAt }), "NoNode"],
    [
      "an old machine belongs to a new Node",
      node({ createdAt: nowAt, instanceBornAt: eventAt }),
      "Make",
    ],
    ["no policy selects the node", node({ labels: {} }), "NotOwned"],
  ])("if %s: %s", (_, one, kind) => {
    expect(meaning({ node: one }).kind).toBe(kind);
  });

  it.each(["Scheduled", "Held", "Preparing", "Draining", "RollingBack"] as const)(
    "forces a planned departure that is %s",
    (phase) => {
      const planned = departure({ phase });
      const told = { noticedAt: eventAt, deadlineAt, source: "gcp/operations/operation-1" };
      const update = { ...told, cause: "Preempted" };
      const found = meaning({ departures: [planned] });
      expect(found).toEqual({ kind: "Force", departure: planned, update });
    },
  );

  it("is already known if Lastcall is releasing the machine", () => {
    expect(meaning({ departures: [departure({ phase: "Releasing" })] }).kind).toBe("Known");
  });

  it("that a policy may ignore leaves the plan alone", () => {
    const notice = { ...gone, cause: "RebalanceRecommendation" } as const;
    const found = meaning({ notice, departures: [departure({})] });
    expect(found).toMatchObject({ kind: "Make", order: { name: "n1-01234567-2" } });
  });

  describe("after the agent's notice", () => {
    const told = { cause: "SpotInterruption", noticedAt: eventAt, source: "agent/gcp" } as const;

    it("is already known", () => {
      expect(meaning({ departures: [departure({ ...told, deadlineAt })] }).kind).toBe("Known");
    });

    it("brings a later deadline forward, and keeps the first source", () => {
      const later = departure({ ...told, deadlineAt: plus(deadlineAt, seconds(90)) });
      const update = { noticedAt: eventAt, deadlineAt, source: "agent/gcp" };
      const found = meaning({ departures: [later] });
      expect(found).toEqual({ kind: "Force", departure: later, update });
    });
  });

  it.each<[string, Cause, Cause, NoticeCause]>([
    ["maintenance", "ScheduledMaintenance", "RebalanceRecommendation", "ScheduledMaintenance"],
    ["an interruption", "SpotInterruption", "ScheduledMaintenance", "SpotInterruption"],
    ["no maintenance", "LifecycleHook", "LifecycleHook", "ScheduledMaintenance"],
    [
      "no recommendation",
      "ScheduledMaintenance",
      "ScheduledMaintenance",
      "RebalanceRecommendation",
    ],
  ])("replaces a less serious cause with a more serious one: %s", (_, expected, standing, told) => {
    const owner = departure({ noticedAt: eventAt, cause: standing, deadlineAt: undefined });
    const found = meaning({ notice: { ...gone, cause: told }, departures: [owner] });
    expect(found.kind).toBe("Force");
    const cause = "update" in found ? (found.update.cause ?? standing) : undefined;
    expect(cause).toBe(expected);
  });

  it("replaces a recommendation that the policy may ignore, with or without a deadline", () => {
    const told = { noticedAt: eventAt, source: "agent/aws/rebalance" };
    const recommended = departure({
      ...told,
      cause: "RebalanceRecommendation",
      deadlineAt: undefined,
    });
    const hook = { ...gone, cause: "LifecycleHook", deadlineAt: undefined } as const;
    const source = "gcp/operations/operation-1";
    const update = { noticedAt: eventAt, deadlineAt: undefined, source, cause: "LifecycleHook" };
    const found = meaning({ notice: hook, departures: [recommended] });
    expect(found).toEqual({ kind: "Force", departure: recommended, update });
    const graver = departure({ ...told, cause: "SpotInterruption", deadlineAt });
    expect(meaning({ notice: hook, departures: [graver] }).kind).toBe("Known");
  });

  it.each(["Scheduled", "RollingBack"] as const)(
    "waits while a withdrawn departure in phase %s is being undone",
    (phase) => {
      const told = { cause: "ScheduledMaintenance", noticedAt: eventAt, withdrawnAt: eventAt };
      const undone = departure({ ...told, phase, source: "agent/aws" } as Fields);
      expect(meaning({ departures: [undone] }).kind).toBe("Undoing");
      const over = ended("Cancelled", nowAt, { withdrawnAt: eventAt });
      expect(meaning({ departures: [over] }).kind).toBe("Make");
    },
  );

  describe("that withdraws maintenance", () => {
    const source = "aws/queue/health/retirement-1";
    const beginsAt = plus(eventAt, minutes(10));
    const event = { cause: "ScheduledMaintenance", deadlineAt: beginsAt } as const;
    const off: Notice = {
      ...event,
      noticedAt: eventAt,
      source: "aws/queue/health",
      eventId: "retirement-1",
      withdrawn: true,
    };
    const told = { ...event, source, noticedAt: plus(eventAt, hours(-1)) };

    it.each(["Scheduled", "Draining", "Releasing"] as const)(
      "withdraws the departure that it made, which is %s",
      (phase) => {
        const made = departure({ ...told, phase });
        const found = meaning({ notice: off, departures: [made] });
        expect(found).toEqual({ kind: "Withdraw", departure: made, at: eventAt });
      },
    );

    it("withdraws it even long after the event, and without a time", () => {
      const made = departure(told);
      expect(meaning({ notice: off, departures: [made], at: plus(eventAt, hours(9)) }).kind).toBe(
        "Withdraw",
      );
      const timeless = { ...off, deadlineAt: undefined };
      expect(meaning({ notice: timeless, departures: [made] }).kind).toBe("Withdraw");
    });

    it.each([
      ["is already withdrawn", departure({ ...told, withdrawnAt: eventAt })],
      ["has ended", ended("Cancelled", nowAt, told)],
      [
        "now has an earlier deadline",
        departure({ ...told, deadlineAt: plus(eventAt, minutes(2)) }),
      ],
    ])("changes nothing for a departure that %s", (_, made) => {
      expect(meaning({ notice: off, departures: [made] }).kind).toBe("Known");
    });

    it("leaves another event's departure alone, and is recorded beside it", () => {
      const other = departure({ ...told, source: "aws/queue/health/retirement-2" });
      const order = { name: "n1-01234567-2", source, withdrawnAt: eventAt };
      expect(meaning({ notice: off, departures: [other] })).toMatchObject({ kind: "Make", order });
    });

    it("is recorded before the withdrawn notice takes effect", () => {
      const far = { ...off, deadlineAt: plus(eventAt, hours(30)) };
      const nearAt = plus(far.deadlineAt, minutes(-125));
      expect(meaning({ notice: far, at: plus(nearAt, millis(-1)) }).kind).toBe("TooEarly");
      const found = meaning({ notice: far, at: nearAt });
      const order = { source, withdrawnAt: eventAt, reason: "NoticeWithdrawn" };
      expect(found).toMatchObject({ kind: "Make", order });
      const { withdrawn: _, ...again } = far;
      const written = departure({ ...told, withdrawnAt: eventAt });
      const at = plus(far.deadlineAt, minutes(-15));
      expect(meaning({ notice: again, at, departures: [written] }).kind).toBe("Known");
    });

    it.each([
      ["no node belongs to the machine", { machine: "gce://p/z/n2" }, "NoNode"],
      ["no policy selects the node", { node: node({ labels: {} }) }, "NotOwned"],
      ["it was an hour ago", { at: plus(eventAt, minutes(71)) }, "Known"],
      [
        "it was an hour ago, of a machine of another cluster",
        { at: plus(eventAt, minutes(71)), machine: "gce://p/z/n2" },
        "Known",
      ],
    ] as const)("if %s: %s", (_, world, kind) => {
      expect(meaning({ notice: off, ...world }).kind).toBe(kind);
    });
  });

  it.each([
    [
      "had its departure, however that ended",
      ended("Cancelled", nowAt, { source: "gcp/operations/operation-1" }),
      "Known",
    ],
    ["took a machine that left by another departure", ended("Preempted", nowAt), "Known"],
    ["came after a departure that left the machine in place", ended("Cancelled", nowAt), "Make"],
    [
      "came after the previous machine had left",
      ended("Planned", plus(eventAt, minutes(-9))),
      "Make",
    ],
  ])("that %s: %s", (_, former, kind) => {
    // The new machine took over the old Node object, with a boot ID of its own.
    const now = node({ bootID: "boot-2" });
    expect(meaning({ node: now, departures: [former] }).kind).toBe(kind);
  });
});
