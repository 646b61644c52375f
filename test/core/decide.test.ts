import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../src/core/cluster/node.ts";
import { decide } from "../../src/core/decide.ts";
import type { Snapshot } from "../../src/core/departure/decision.ts";
import type { Departure, DepartureStatus as Status } from "../../src/core/departure/departure.ts";
import { hours, type Instant, instant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { decided, departure, inShort, node, now, spot, world } from "./decide-scene.ts";
import { daily } from "./fleet-builder.ts";

describe("a departure in a phase of a newer version", () => {
  const status = { phase: "Waiting", startedAt: now, timeline: [] } as unknown as Status;

  it.each([
    ["its node is there", [node()]],
    ["its node is gone", []],
    ["its node is being deleted", [node({ deletionAt: now })]],
    ["another machine has its node", [node({ bootID: "b2" })]],
  ])("is left alone, and keeps no other node from leaving: %s", (_, nodes) => {
    const other = node({ name: "n2", uid: "other", createdAt: plus(now, hours(-24)) });
    for (const more of [{}, { noticedAt: now }, { deletionAt: now }, { withdrawnAt: now }]) {
      const snapshot = world({
        nodes: [...nodes, other],
        departures: [departure({ status, ...more })],
      });
      const found = inShort(snapshot).filter((one) => !one.startsWith("Schedule"));
      expect(found).toEqual(nodes.length === 0 ? [] : ["Skip: LeftToOthers"]);
      expect(decided(snapshot).filter(({ kind }) => kind === "Schedule")).toHaveLength(1);
    }
  });
});

describe("a node without a departure", () => {
  it("is scheduled with the name that the contract fixes", () => {
    const [only] = decided(world());
    expect(only).toMatchObject({
      kind: "Schedule",
      reason: "Spaced",
      order: { name: "n1-01234567", cause: "Planned", policy: "spot", source: "planner" },
    });
  });

  it.each([
    ["no policy matches", world({ policies: [] }), "Skip: NoPolicy"],
    [
      "has no providerID",
      world({ nodes: [node({ providerID: undefined })] }),
      "Skip: NoProviderID",
    ],
    [
      "has no launch time",
      world({ nodes: [node({ createdAt: undefined })] }),
      "Skip: NoLaunchTime",
    ],
    [
      "is on hold",
      world({ nodes: [node({ annotations: { "lastcall.dev/hold": "true" } })] }),
      "Skip: OnHold",
    ],
    ["has a policy with dryRun", world({ policies: [{ ...spot, dryRun: true }] }), "Skip: Spaced"],
    ["has a paused policy", world({ policies: [{ ...spot, paused: true }] }), "Skip: PolicyPaused"],
  ])("that %s is left alone, with the reason", (_, snapshot, said) => {
    expect(inShort(snapshot)).toEqual([said]);
  });

  it("that still has Lastcall's mark is cleared as an orphan", () => {
    const marked = node({ annotations: { "lastcall.dev/departure": "n1-01234567" } });
    expect(inShort(world({ nodes: [marked] }))).toEqual(["ClearOrphan: OrphanedCordon"]);
  });

  it("is left cordoned if it is being deleted, which a finalizer may delay for long", () => {
    const annotations = { "lastcall.dev/departure": "n1-01234567" };
    const dying = node({ annotations, unschedulable: true, deletionAt: plus(now, hours(-1)) });
    expect(inShort(world({ nodes: [dying] }))).toEqual(["Skip: NodeTerminating"]);
  });

  it("is scheduled under the next name after a rollback, at least ten minutes later", () => {
    const endedAt = plus(now, minutes(-1));
    const status = { phase: "Ended", outcome: "RolledBack", endedAt, timeline: [] } as const;
    const old = node({ createdAt: plus(now, hours(-23)) });
    const [only] = decided(world({ nodes: [old], departures: [departure({ status })] }));
    expect(only).toMatchObject({ kind: "Schedule", order: { name: "n1-01234567-2" } });
    if (only?.kind !== "Schedule") return;
    expect(only.order.departAt).toBeGreaterThanOrEqual(plus(endedAt, minutes(10)));
  });

  it("gets no name that is in use, even if earlier records are gone", () => {
    const ended = { phase: "Ended", endedAt: plus(now, hours(-1)), timeline: [] } as const;
    const second = departure({ name: "n1-01234567-2", status: ended });
    const third = departure({ name: "n1-01234567-3", uid: "d3", status: ended });
    const names = decided(world({ departures: [second, third] })).flatMap((one) =>
      one.kind === "Schedule" ? one.order.name : [],
    );
    expect(names).toEqual(["n1-01234567"]);
    const all = [departure({ uid: "d0", status: ended }), third];
    const [name] = decided(world({ departures: all })).flatMap((one) =>
      one.kind === "Schedule" ? one.order.name : [],
    );
    expect(name).toBe("n1-01234567-2");
  });
});

describe("a planned departure that is due", () => {
  it("starts", () => {
    expect(inShort(world({ departures: [departure()] }))).toContain("Begin Due: Spaced");
  });

  it("starts alone: the next of its policy waits for the next pass", () => {
    const nodes = [
      node(),
      node({ name: "n2", uid: "fedcba9876543210", providerID: "gce://p/z/n2" }),
    ];
    const second = departure({
      name: "n2-fedcba98",
      uid: "d2",
      node: { name: "n2", uid: "fedcba9876543210" },
    });
    const begins = inShort(world({ nodes, departures: [departure(), second] })).filter((one) =>
      one.startsWith("Begin"),
    );
    expect(begins).toHaveLength(1);
  });

  it.each([
    [
      "a freeze",
      { policies: [{ ...spot, gates: { freezeUntil: plus(now, hours(1)), blockingPods: [] } }] },
      "Note Blocked: Frozen",
    ],
    [
      "alerts that were not queried",
      {
        policies: [
          { ...spot, gates: { alerts: { url: "http://a", matchers: [] }, blockingPods: [] } },
        ],
      },
      "Note Blocked: AlertsUnknown",
    ],
    [
      "a cordon of others",
      { nodes: [node({ unschedulable: true })] },
      "Note Blocked: CordonedByOthers",
    ],
    ["its own hold", { departures: [departure({ hold: true })] }, "Note Blocked: HeldByPerson"],
    [
      "a hold on the node",
      { nodes: [node({ annotations: { "lastcall.dev/hold": "true" } })] },
      "Note Blocked: OnHold",
    ],
  ])("is held by %s", (_, more, said) => {
    expect(inShort(world({ departures: [departure()], ...more }))).toContain(said);
  });

  it("is started at its deadline despite a freeze, with the reason DeadlineForces", () => {
    const frozen = { ...spot, gates: { freezeUntil: plus(now, hours(1)), blockingPods: [] } };
    const due = departure({ departAt: plus(now, minutes(-1)), deadlineAt: now });
    const old = node({ createdAt: plus(now, minutes(-(23 * 60 + 30))) });
    const said = inShort(world({ nodes: [old], policies: [frozen], departures: [due] }));
    expect(said).toContain("Begin Due: DeadlineForces");
  });

  it("is never forced past a person's hold", () => {
    const due = departure({ departAt: plus(now, minutes(-1)), deadlineAt: now, hold: true });
    const old = node({ createdAt: plus(now, minutes(-(23 * 60 + 30))) });
    const said = inShort(world({ nodes: [old], departures: [due] }));
    expect(said).toContain("Note Blocked: HeldByPerson");
  });
});

describe("a held departure", () => {
  const until = plus(now, hours(2));
  const frozen = (end: Instant): Snapshot["policies"] => [
    { ...spot, gates: { freezeUntil: end, blockingPods: [] } },
  ];
  const windowed = (window: string) => [{ ...spot, windows: [daily(window)] }];
  const half = plus(now, minutes(-30));
  const recent = departure({
    ...{ name: "n0-1", uid: "d0", node: { name: "n0", uid: "u0" } },
    status: { phase: "Ended", startedAt: half, timeline: [] },
  });

  // Due since 11:59:30; the hold ends at another instant.
  const due = departure({ departAt: plus(now, seconds(-30)) });

  it.each<[string, Partial<Snapshot>, string, Instant | undefined]>([
    [
      "a freeze",
      { policies: frozen(until) },
      "n1 waits until the freeze ends at 2026-11-20T14:00:00.000Z.",
      until,
    ],
    [
      "an hourly budget",
      {
        policies: [{ ...spot, budgets: [{ kind: "PerHour", perHour: 1 }] }],
        departures: [recent, due],
      },
      "n1 waits until 2026-11-20T12:30:00.000Z at least, because the policy's budget was used up when it was due: 1 departure had started within an hour, and at most 1 may.",
      plus(half, hours(1)),
    ],
    [
      "a user's hold",
      { departures: [{ ...due, hold: true }] },
      "n1 waits, because its Departure has spec.hold set.",
      undefined,
    ],
  ])("because of %s says when the hold ends, if that is known", (_, more, sentence, end) => {
    const verdict = decide(world({ departures: [due], ...more }), now);
    const [held] = verdict.decisions.filter((one) => one.kind === "Note");
    expect([held?.explain, held?.until]).toEqual([sentence, end]);
    expect(verdict.askAgainAt).toBe(plus(now, minutes(1)));
  });

  it("is checked at the end of a hold that ends within the minute", () => {
    const end = plus(now, seconds(10));
    const verdict = decide(world({ departures: [due], policies: frozen(end) }), now);
    expect(verdict.askAgainAt).toBe(end);
  });

  it("outside its window says when the next one opens, if there is one", () => {
    // The next window opens after the deadline, which is at 13:30.
    const old = node({ createdAt: plus(now, hours(-22)) });
    const policies = windowed("14:00-15:00");
    const held = departure({
      departAt: plus(now, seconds(-30)),
      deadlineAt: plus(now, minutes(90)),
    });
    const said = (snapshot: Snapshot) =>
      decided(snapshot).flatMap((one) => (one.kind === "Note" ? one.explain : []));
    expect(said(world({ nodes: [old], policies, departures: [held] }))).toEqual([
      "n1 waits for a window that opens at 2026-11-20T14:00:00.000Z.",
    ]);
    const never = [{ ...spot, windows: [daily("00:00-24:00", { type: "Deny" })] }];
    expect(said(world({ nodes: [old], policies: never, departures: [held] }))).toEqual([
      "n1 waits for a window.",
    ]);
  });

  it("is noted again once if the end of the hold moves", () => {
    const message = "n1 waits until the freeze ends at 2026-11-20T13:00:00.000Z.";
    const status = { phase: "Held", reason: "Frozen", message, timeline: [] } as const;
    const held = departure({ departAt: plus(now, seconds(-30)), status });
    const notes = (end: Instant) =>
      inShort(world({ departures: [held], policies: frozen(end) })).filter((one) =>
        one.startsWith("Note"),
      );
    expect(notes(plus(now, hours(1)))).toEqual([]);
    expect(notes(until)).toEqual(["Note Blocked: Frozen"]);
  });
});

describe("a departure that has not started", () => {
  it.each([
    ["whose node is gone", { nodes: [] }, "Note NodeGone: NodeGone"],
    [
      "whose node has another machine",
      { nodes: [node({ bootID: "b2" })] },
      "Note MachineReplaced: MachineReplaced",
    ],
    ["that no policy selects any more", { policies: [] }, "Note Cancelled: PlanChanged"],
    [
      "that was deleted",
      { departures: [departure({ deletionAt: now })] },
      "Note Cancelled: CancelledByPerson",
    ],
  ])("%s ends", (_, more, said) => {
    expect(inShort(world({ departures: [departure()], ...more }))).toContain(said);
  });
});

describe("a departure whose policy", () => {
  const draining = { phase: "Draining", startedAt: now, timeline: [] } as const;
  const releasing = { ...draining, phase: "Releasing" } as const;
  const odd = { name: "spot", problem: "spec.windows", weight: 0 };

  const ends = (going: Departure, more: Partial<Snapshot>) => {
    const decisions = decided(world({ departures: [going], ...more }));
    return decisions.flatMap((one) => (one.kind === "Continue" ? [one.end] : []));
  };
  const unread = { policies: [], badPolicies: [odd] };
  const invalid = { event: "GaveUp", reason: "PolicyInvalid" };
  const lost = { event: "GaveUp", reason: "PlanChanged" };

  it.each<[string, Partial<Departure>, Partial<Snapshot>, object | undefined]>([
    ["cannot be read, is undone", {}, unread, invalid],
    ["cannot be read, is undone beside one that selects it", {}, { badPolicies: [odd] }, invalid],
    ["cannot be read, is undone if it was requested", { cause: "Manual" }, unread, invalid],
    ["cannot be read, is undone in its release", { status: releasing }, unread, invalid],
    ["cannot be read, continues on a notice", { noticedAt: now }, unread, undefined],
    ["is deleted, is undone", {}, { policies: [] }, lost],
    ["is deleted, is undone if it was requested", { cause: "Manual" }, { policies: [] }, lost],
    ["is deleted, goes on under one that selects its node", { policy: "old" }, {}, undefined],
    ["is not named, goes on", { cause: "Manual", policy: undefined }, { policies: [] }, undefined],
  ])("%s by a new leader", (_, going, more, end) => {
    const found = ends(departure({ status: draining, ...going }), more);
    expect(found).toEqual([end && expect.objectContaining(end)]);
  });

  it("cannot be read or is deleted does not stop a release that was requested", () => {
    const asked = { ...releasing, machine: { id: "7", mode: "Recreate" } } as const;
    for (const more of [unread, { policies: [] }]) {
      expect(ends(departure({ status: asked }), more)).toEqual([undefined]);
    }
  });

  it.each<[string, Partial<Departure>, Partial<NodeFacts>]>([
    ["it is rolled back", { status: { ...draining, phase: "RollingBack" } }, {}],
    ["it is deleted", { status: draining, deletionAt: now }, {}],
    ["it is deleted in its release", { status: releasing, deletionAt: now }, {}],
    ["it is held", { status: draining, hold: true }, {}],
    ["another machine is behind its node", { status: draining }, { bootID: "b2" }],
  ])("cannot be read is undone all the same if %s", (_, going, seen) => {
    expect(ends(departure(going), { ...unread, nodes: [node(seen)] })).toEqual([undefined]);
  });

  it("cannot be read keeps its machine, although somebody holds it in its release", () => {
    const held = departure({ status: releasing, hold: true });
    expect(ends(held, unread)).toMatchObject([invalid]);
  });

  it("cannot be read keeps its instant, under that policy", () => {
    const light = { policies: [{ ...spot, name: "light", weight: -1 }], badPolicies: [odd] };
    const [only] = decided(world({ departures: [departure()], ...light }));
    expect(only).toMatchObject({ kind: "Note", event: "Blocked", reason: "PolicyInvalid" });
  });

  it("changes to a heavier one moves to that policy before it starts", () => {
    const heavy = { ...spot, name: "heavy", weight: 1 };
    const due = departure({ departAt: plus(now, seconds(-1)) });
    const decisions = decided(world({ departures: [due], policies: [spot, heavy] }));
    expect(decisions).toMatchObject([{ kind: "Move", policy: "heavy" }]);
    const moved = { ...due, policy: "heavy" };
    const said = inShort(world({ departures: [moved], policies: [spot, heavy] }));
    expect(said).toContain("Begin Due: Spaced");
  });
});

describe("the instant of the next pass", () => {
  it("is that of the next planned departure", () => {
    const later = plus(now, hours(2));
    const planned = departure({ departAt: later });
    const { askAgainAt, decisions } = decide(world({ departures: [planned] }), now);
    const moved = decisions.find((one) => one.kind === "Move");
    expect(askAgainAt).toBe(moved?.kind === "Move" ? moved.departAt : later);
  });
});

describe("a departure that no window allows before its deadline", () => {
  it.each([0, 50, 70_000])(
    "is forced %i ms after its deadline, however late the pass is",
    (lateMs) => {
      const policies = [{ ...spot, windows: [daily("20:00-21:00")] }];
      const deadlineAt = plus(now, minutes(30));
      const due = departure({ departAt: deadlineAt, deadlineAt });
      const old = node({ createdAt: plus(now, hours(-23)) });
      const said = inShort(
        world({ policies, nodes: [old], departures: [due] }),
        instant(deadlineAt + lateMs),
      );
      expect(said).toEqual(["Begin Due: DeadlineForces"]);
    },
  );
});

describe("a departure planned for the last instant of a window", () => {
  // Nothing can act within the last millisecond that the window is open.
  const endAt = plus(now, hours(6));
  const lastAt = instant(endAt - 1);
  const window = { ...daily("00:00-18:00"), name: "day" };
  const policies = [{ ...spot, windows: [window] }];
  const old = node({ createdAt: plus(now, hours(-12)) });
  const last = departure({ departAt: lastAt, deadlineAt: plus(now, minutes(11 * 60 + 30)) });
  const snapshot = world({ policies, nodes: [old], departures: [last] });

  it("starts seconds earlier, while the window is certainly open", () => {
    const early = plus(endAt, seconds(-5));
    expect(inShort(snapshot, instant(early - 1))).toEqual([]);
    expect(decide(snapshot, instant(early - 1)).askAgainAt).toBe(early);
    expect(inShort(snapshot, early)).toEqual(["Begin Due: Spaced"]);
  });

  it("is planned again if it was missed, instead of being held until its deadline", () => {
    const policiesAgain = [{ ...spot, windows: [window, daily("20:00-21:00")] }];
    const missed = world({ policies: policiesAgain, nodes: [old], departures: [last] });
    const [move] = decided(missed, endAt);
    // The next window opens at 12:00 + 8 h and closes at 21:00; the deadline is at 23:30.
    expect(move).toMatchObject({ kind: "Move", departAt: instant(plus(now, hours(9)) - 1) });
  });

  it("starts no earlier than its instant if the policy has no window", () => {
    const anyHour = world({ nodes: [old], departures: [last] });
    expect(inShort(anyHour, instant(lastAt - 1))).toEqual([]);
  });
});
