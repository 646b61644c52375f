import { describe, expect, it } from "vitest";
import type { Decision, Snapshot } from "../../src/core/departure/decision.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { type PhaseEvent, statusAfter } from "../../src/core/departure/ledger.ts";
import type { Policy } from "../../src/core/policy/policy.ts";
import { hours, type Instant, instant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { decided, departure, inShort, node, now, spot, world } from "./decide-scene.ts";

describe("a departure that waits while another one removes its node", () => {
  const taken = { startedAt: plus(now, minutes(-5)), timeline: [] } as const;
  const leader = departure({
    ...{ name: "n1-asked", uid: "d0", cause: "Manual" },
    status: { phase: "Ended", outcome: "Planned", endedAt: now, ...taken },
  });
  const said = (snapshot: Snapshot) =>
    decided(snapshot).flatMap((one) => (one.kind === "Note" ? `${one.event}: ${one.explain}` : []));

  it.each([
    ["the Node object is gone", []],
    ["the group's new machine has taken over the Node object", [node({ bootID: "b2" })]],
  ])("is cancelled when that ends and %s", (_, nodes) => {
    expect(said(world({ nodes, departures: [leader, departure()] }))).toEqual([
      "Cancelled: n1 is no longer planned: it left with departure n1-asked.",
    ]);
  });

  it("is lost with its own machine, even if an earlier one left under the same Node", () => {
    const former = { ...leader, node: { ...leader.node, bootID: "b0" } };
    expect(said(world({ nodes: [], departures: [former, departure()] }))).toEqual([
      "NodeGone: n1 is gone: its Node object was deleted.",
    ]);
  });

  it("is cancelled, if planned, when the machine is lost before either has started", () => {
    const request = departure({ ...{ name: "n1-asked", uid: "d0", cause: "Manual" } });
    expect(said(world({ nodes: [], departures: [request, departure()] }))).toEqual([
      "NodeGone: n1 is gone: its Node object was deleted.",
      "Cancelled: n1 is no longer planned: it left with departure n1-01234567.",
    ]);
  });

  it("does not keep a deleted departure's mark on the node", () => {
    const marked = node({ annotations: { "lastcall.dev/departure": "n1-asked" } });
    const waiting = departure({ departAt: plus(now, hours(5)) });
    const orphan = (phase: Departure["status"]["phase"], more: Partial<Departure> = {}) => {
      const other = { ...waiting, ...more, status: { phase, timeline: [] } };
      return inShort(world({ nodes: [marked], departures: [other] }));
    };
    expect(orphan("Scheduled")).toContain("ClearOrphan: OrphanedCordon");
    expect(orphan("Held")).toContain("ClearOrphan: OrphanedCordon");
    expect(orphan("Scheduled", { name: "n1-asked" })).not.toContain("ClearOrphan: OrphanedCordon");
    // One that is under way, or about to be, puts its own mark there.
    expect(orphan("Preparing")).not.toContain("ClearOrphan: OrphanedCordon");
    expect(orphan("Scheduled", { noticedAt: now })).not.toContain("ClearOrphan: OrphanedCordon");
  });
});

describe("a planned departure whose node leaves before its time", () => {
  /** The notes about it after its Node, last seen with this taint, is gone. */
  const gone = (key: string, more: Partial<Departure> = {}) => {
    const waiting = departure(more);
    const taken = node({ ...waiting.node, taints: [{ key, effect: "NoSchedule" }] });
    const found = decided(world({ nodes: [taken], departures: [departure({ node: taken })] }));
    const held = found.flatMap((one) => (one.kind === "Note" ? [one] : []))[0];
    const status = held && statusAfter(waiting, { ...held, at: now });
    const departures = [{ ...waiting, status: status ?? waiting.status }];
    return decided(world({ nodes: [], departures })).flatMap((one) =>
      one.kind === "Note" ? `${one.event} ${one.explain}` : [],
    );
  };

  it.each([
    ["Karpenter", "karpenter.sh/disrupted"],
    ["cluster-autoscaler", "ToBeDeletedByClusterAutoscaler"],
  ])("is attributed to %s, which had announced it", (rival, key) => {
    expect(gone(key)).toEqual([`Cancelled n1 is no longer planned: ${rival} removed it.`]);
  });

  it("names the tool at its end, but not after a start", () => {
    const held = { ...departure().status, phase: "Held", leftTo: "Karpenter" } as const;
    const tool = (event: PhaseEvent) =>
      statusAfter(departure({ status: held }), { event, reason: "PlanChanged", at: now })?.leftTo;
    expect([tool("Cancelled"), tool("Due"), tool("Unblocked")]).toEqual([
      "Karpenter",
      undefined,
      undefined,
    ]);
  });

  it("is attributed to the cloud after a notice, whichever tool removed the node", () => {
    const noticed = { cause: "SpotInterruption", noticedAt: now } as const;
    expect(gone("karpenter.sh/disrupted", noticed)).toEqual([
      "NodeGone n1 is gone: its Node object was deleted.",
    ]);
  });

  it.each([
    "aws-node-termination-handler/spot-itn",
    "cloud.google.com/impending-node-termination",
    "karpenter.sh/rebooting",
  ])("is attributed to the cloud after the taint %s", (key) => {
    expect(gone(key)).toEqual(["NodeGone n1 is gone: its Node object was deleted."]);
  });

  it("is attributed to the cloud even if the node is named like a tool that removes nodes", () => {
    const named = { name: "cluster-autoscaler-1", uid: "u1" };
    expect(gone("aws-node-termination-handler/spot-itn", { node: named })).toEqual([
      "NodeGone cluster-autoscaler-1 is gone: its Node object was deleted.",
    ]);
  });
});

describe("a person's request for an instant past the node's deadline", () => {
  const late = plus(now, hours(30));
  const request = departure({ uid: "d2", cause: "Manual", source: "person", departAt: late });
  const plan = departure({ name: "n1-01234567-2" });
  const notes = (snapshot: Snapshot, at?: Instant) =>
    decided(snapshot, at).flatMap((one) =>
      one.kind === "Note" ? `${one.departure.uid} ${one.event}: ${one.reason}` : [],
    );

  it("leaves the node in the plan, and says that the planned departure comes first", () => {
    const [held, scheduled] = decided(world({ departures: [request] }));
    expect(scheduled).toMatchObject({ kind: "Schedule", order: { name: "n1-01234567-2" } });
    expect(held).toMatchObject({
      ...{ kind: "Note", event: "Blocked", reason: "DeadlineFirst" },
      explain:
        "n1 leaves as planned before the requested time 2026-11-21T18:00:00.000Z, because that is past its deadline: 2026-11-21T10:30:00.000Z.",
    });
  });

  it("says so once, and is released if it is moved to before the deadline", () => {
    const { explain } = decided(world({ departures: [request] }))[0] as Decision;
    const status = { phase: "Held", reason: "DeadlineFirst", timeline: [] } as const;
    const held = { ...request, status: { ...status, message: explain } };
    const waits = { ...plan, departAt: plus(now, hours(22)) };
    expect(notes(world({ departures: [held, waits] }))).toEqual([]);
    const moved = { ...held, departAt: plus(now, hours(2)) };
    expect(notes(world({ departures: [moved, waits] }))).toEqual([
      "d2 Unblocked: NotYet",
      "d1 Blocked: Requested",
    ]);
  });

  it("waits while the node leaves as planned, and is cancelled with that departure", () => {
    const status = { phase: "Draining", startedAt: now, timeline: [] } as const;
    const going = { ...plan, status };
    const due = { ...request, departAt: now };
    expect(notes(world({ departures: [due, going] }))).toEqual(["d2 Blocked: Started"]);
    const gone = world({ nodes: [], departures: [due, going] });
    expect(notes(gone)).toContain("d2 Cancelled: PlanChanged");
  });

  it("starts at its instant if the planned one has not, and never together with it", () => {
    const old = node({ createdAt: plus(now, hours(-23.75)) });
    const begins = (departures: readonly Departure[]) =>
      decided(world({ nodes: [old], departures })).flatMap((one) =>
        one.kind === "Begin" ? one.departure.uid : [],
      );
    const deadlineAt = plus(now, minutes(-15));
    const due = { ...request, departAt: now };
    expect(begins([due, { ...plan, departAt: deadlineAt, deadlineAt }])).toHaveLength(1);
    expect(begins([due, { ...plan, departAt: deadlineAt, deadlineAt, hold: true }])).toEqual([
      "d2",
    ]);
  });

  it("is not held in favor of a plan that is only a dry run", () => {
    const policies = [{ ...spot, dryRun: true }];
    expect(notes(world({ policies, departures: [request] }))).toEqual([]);
  });

  it("keeps the node while a person holds it, like any hold", () => {
    const held = { ...request, hold: true };
    expect(inShort(world({ departures: [held] }))).toEqual(["Note Blocked: HeldByPerson"]);
  });
});

describe("several requests for one node", () => {
  const ask = (name: string, more: Partial<Departure> = {}) =>
    departure({ name, uid: name, cause: "Manual", departAt: plus(now, minutes(-1)), ...more });
  const said = (departures: readonly Departure[]) =>
    decided(world({ departures })).flatMap((one) => {
      if (one.kind === "Begin") return `${one.departure.name} begins`;
      return one.kind === "Note" ? `${one.departure.name} ${one.event}: ${one.reason}` : [];
    });

  it("wait for the first, so that they do not start in turn", () => {
    const earlier = ask("b", { departAt: plus(now, minutes(-5)) });
    expect(said([ask("a"), earlier])).toEqual(["b begins", "a Blocked: Started"]);
    expect(said([ask("a"), { ...earlier, isResting: true }])).toEqual(["a Blocked: Requested"]);
  });

  it.each([
    ["one that a person holds", { hold: true }],
    ["one for a later time", { departAt: plus(now, hours(1)) }],
  ])("do not wait for %s", (_, more) => {
    expect(said([ask("a", more), ask("b")])).toContain("b begins");
  });

  it("do not wait past a deadline of their own", () => {
    const first = ask("a", { departAt: plus(now, minutes(-5)) });
    const urgent = ask("b", { deadlineAt: plus(now, seconds(-1)) });
    expect(said([first, urgent])).not.toContain("b Blocked: Requested");
  });
});

describe("a person's request for a node that another tool removes", () => {
  const taints = [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }] as const;
  const marked = node({ taints: [...taints] });
  const request = departure({ cause: "Manual", departAt: plus(now, minutes(-1)) });

  it.each([
    ["", {}],
    [", also past its own deadline", { deadlineAt: plus(now, seconds(-30)) }],
  ])("waits%s, and starts when the tool has changed its mind", (_, more) => {
    const due = { ...request, ...more };
    const [held] = decided(world({ nodes: [marked], departures: [due] }));
    expect(held).toMatchObject({ event: "Blocked", reason: "LeftToOthers" });
    expect(held?.explain).toContain("cluster-autoscaler");
    const status = { phase: "Held", reason: "LeftToOthers", leftTo: "cluster-autoscaler" } as const;
    const waiting = { ...due, status: { ...status, timeline: [] } };
    expect(inShort(world({ departures: [waiting] }))).toEqual(["Begin Due: Requested"]);
  });
});

describe("a person's request that a budget delays past the node's deadline", () => {
  it("gives way to the planned departure, which is forced at the end of the lifetime", () => {
    const policies = [{ ...spot, budgets: [{ kind: "PerHour", perHour: 1 }] as const }];
    const recent = departure({
      ...{ name: "n0-1", uid: "d0", node: { name: "n0", uid: "u0" } },
      status: { phase: "Ended", startedAt: plus(now, minutes(-10)), timeline: [] },
    });
    const request = departure({
      ...{ name: "n1-asked", uid: "d2", cause: "Manual", departAt: plus(now, hours(-1)) },
      status: { phase: "Held", reason: "BudgetSpent", timeline: [] },
    });
    const planned = departure({
      ...{ departAt: plus(now, minutes(-31)), createdAt: plus(now, hours(-20)) },
      deadlineAt: plus(now, minutes(-30)),
      status: { phase: "Held", reason: "Requested", timeline: [] },
    });
    const old = node({ createdAt: plus(now, hours(-24)) });
    const departures = [recent, request, planned];
    const begun = decided(world({ nodes: [old], policies, departures })).flatMap((one) =>
      one.kind === "Begin" ? `${one.departure.uid} ${one.reason}` : [],
    );
    expect(begun).toEqual(["d1 DeadlineForces"]);
  });
});

describe("a departure whose node is on hold or paused until after its deadline", () => {
  const deadlineAt = plus(now, minutes(30));
  const createdAt = plus(now, hours(-20));
  const due = departure({ departAt: deadlineAt, deadlineAt, createdAt, uid: "due" });
  const hold = { "lastcall.dev/hold": "2026-11-20T20:00:00Z" };
  const undone = departure({
    departAt: plus(now, minutes(20)),
    status: {
      ...{ phase: "Ended", outcome: "RolledBack", endedAt: plus(now, minutes(25)) },
      ...{ startedAt: plus(now, minutes(20)), timeline: [] },
    },
  });
  const begun = (more: Partial<Snapshot>, lateMs: number) => {
    const old = node({ createdAt: plus(now, hours(-23)), annotations: hold });
    const at = instant(deadlineAt + lateMs);
    const snapshot = world({ nodes: [old], departures: [due], ...more });
    return decided(snapshot, at).flatMap((one) => {
      if (one.kind === "Move") return "Moved";
      return one.kind === "Begin" ? `${one.departure.uid} ${one.reason}` : [];
    });
  };

  it.each([0, 50, 70_000])("is forced %i ms after its deadline, despite the hold", (lateMs) => {
    expect(begun({}, lateMs)).toContain("due DeadlineForces");
  });

  it.each([0, 50, 70_000])("starts %i ms after its deadline, without a longer pause", (lateMs) => {
    const nodes = [node({ createdAt: plus(now, hours(-23)) })];
    expect(begun({ nodes, departures: [undone, due] }, lateMs)).toContain("due Spaced");
  });

  it("is moved past the hold if it was first planned after the deadline", () => {
    const late = { ...due, departAt: plus(deadlineAt, minutes(1)) };
    const departures = [{ ...late, createdAt: plus(deadlineAt, seconds(1)) }];
    expect(begun({ departures }, minutes(2))).toEqual(["Moved"]);
  });
});

describe("requests of several nodes", () => {
  const identityOf = (name: string) => ({
    ...{ name, uid: `uid-${name}`, providerID: `gce://p/z/${name}`, bootID: "b1" },
  });
  const nodes = ["n1", "n2", "n3"].map((name) => node(identityOf(name)));
  const policy: Policy = {
    ...spot,
    budgets: [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }],
    spacing: { mode: "Late", minMs: minutes(10) },
  };
  const request = (name: string, more: Partial<Departure> = {}): Departure => {
    const whose = { name: `${name}-asked`, uid: `d-${name}`, node: identityOf(name) };
    return departure({ ...whose, cause: "Manual", deadlineAt: plus(now, minutes(30)), ...more });
  };
  const begunAt = (startedAt: Instant): Partial<Departure> => {
    return { status: { phase: "Draining", startedAt, timeline: [] } };
  };
  const about = (snapshot: Snapshot, at: Instant) =>
    decided(snapshot, at).flatMap((one) =>
      "departure" in one && typeof one.departure === "object" && one.kind !== "Continue"
        ? `${one.departure.node.name} ${one.kind} ${one.reason}`
        : [],
    );

  it("pass the budgets at their deadline one by one, spacing.min apart", () => {
    const deadlineAt = plus(now, minutes(30));
    const minutesLater = (sinceStart: number) => {
      const first = request("n1", begunAt(plus(deadlineAt, minutes(-sinceStart))));
      const departures = [first, request("n2"), request("n3")];
      return world({ nodes, policies: [policy], departures });
    };
    const held = ["n2 Note BudgetSpent", "n3 Note BudgetSpent"];
    expect(about(minutesLater(9), deadlineAt)).toEqual(held);
    expect(about(minutesLater(10), deadlineAt)).toEqual(["n2 Begin Requested"]);
  });

  it("follow the policy that selects their nodes now, whose budgets count them", () => {
    const heavier = { ...policy, name: "spot-2", weight: 10 };
    const asked = request("n2");
    const first = request("n1", { ...begunAt(now), policy: "spot-2" });
    const there = world({ nodes, policies: [policy, heavier], departures: [first, asked] });
    expect(decided(there)).toContainEqual(
      expect.objectContaining({ kind: "Move", departure: asked, departAt: now, policy: "spot-2" }),
    );
    const named = { ...asked, policy: "spot-2" };
    expect(about({ ...there, departures: [first, named] }, now)).toEqual(["n2 Note BudgetSpent"]);
  });

  it("that name no policy are given the one that selects their node, which counts them", () => {
    const unnamed = request("n1", { policy: undefined });
    const there = world({ nodes, policies: [policy], departures: [unnamed] });
    expect(decided(there)).toContainEqual(
      expect.objectContaining({ kind: "Move", departure: unnamed, departAt: now, policy: "spot" }),
    );
    expect(about({ ...there, departures: [request("n1")] }, now)).toEqual(["n1 Begin Requested"]);
    const unmatched = world({ nodes, policies: [], departures: [unnamed] });
    expect(about(unmatched, now)).toEqual(["n1 Begin Requested"]);
  });
});
