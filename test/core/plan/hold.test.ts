import { describe, expect, it } from "vitest";
import type { Snapshot } from "../../../src/core/departure/decision.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { conditionsOf } from "../../../src/core/departure/departure-conditions.ts";
import { statusAfter } from "../../../src/core/departure/ledger.ts";
import { impossible } from "../../../src/core/policy/release-answer.ts";
import { hours, type Instant, minus, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { decided, departure, inShort, node, now, spot, world } from "../decide-scene.ts";

describe("a held departure", () => {
  it.each([
    ["pod", "BlockingPod", "n1 waits for the blocking pod shop/batch-0."],
    ["alert", "AlertsFiring", "n1 waits, because alerts are firing: ClusterDown."],
  ] as const)("names the %s that holds it now, and not one that is gone", (_, reason, message) => {
    const held = departure({
      departAt: plus(now, seconds(-30)),
      status: { phase: "Held", reason, message, timeline: [] },
    });
    const gates = {
      blockingPods: reason === "BlockingPod" ? [{ matchLabels: {}, matchExpressions: [] }] : [],
      ...(reason === "AlertsFiring" && { alerts: { url: "http://alerts:9093", matchers: [] } }),
    };
    const notes = (pod: string, alert: string) => {
      const answer = { blockingPods: new Map([["n1", pod]]), alerts: [alert], gangs: new Map() };
      const gateAnswers = { spot: answer };
      const policies = [{ ...spot, gates }];
      return inShort(world({ departures: [held], policies, gateAnswers })).filter((one) =>
        one.startsWith("Note"),
      );
    };
    expect(notes("shop/batch-0", "ClusterDown")).toEqual([]);
    expect(notes("shop/batch-1", "DiskFull")).toEqual([`Note Blocked: ${reason}`]);
  });
});

/** The departures with what a pass writes to them. */
function afterPass(snapshot: Snapshot, at: Instant): readonly Departure[] {
  const notes = decided(snapshot, at).filter((one) => one.kind === "Note");
  return snapshot.departures.map((one) => {
    const note = notes.find((found) => found.departure === one);
    const status = note && statusAfter(one, { ...note, at });
    return status === undefined ? one : { ...one, status };
  });
}

it("is noted once that its node leaves by another departure, which the cloud's notice made", () => {
  const plan = departure({ departAt: plus(now, minutes(30)), deadlineAt: plus(now, hours(1)) });
  const noticed = departure({
    ...{ name: "n1-2", uid: "noticed", cause: "SpotInterruption", noticedAt: now },
    deadlineAt: plus(now, minutes(2)),
    status: { phase: "Draining", timeline: [] },
  });
  const before = world({ departures: [noticed, plan] });
  const after = world({ departures: afterPass(before, now) });
  expect(messages(after.departures)).toEqual(["n1 leaves because the cloud interrupts it: n1-2."]);
  expect(inShort(after).filter((one) => one.startsWith("Note"))).toEqual([]);
});

const due = departure({ departAt: minus(now, seconds(30)) });
const messages = (all: readonly Departure[]) =>
  all.filter(({ status }) => status.phase === "Held").map(({ status }) => status.message);

describe("the message of a hold", () => {
  /** Nodes of which some are not Ready; n1 is. */
  const fleet = (notReady: number) =>
    Array.from({ length: 6 }, (_, place) =>
      node({
        ...{ name: `n${place + 1}`, uid: place === 0 ? due.node.uid : `u${place}` },
        ready: place + notReady < 6,
      }),
    );

  it("names how much of the fleet is unhealthy now, at most every ten minutes", () => {
    let departures: readonly Departure[] = [due];
    const look = (notReady: number, at: Instant) => {
      departures = afterPass(world({ nodes: fleet(notReady), departures }), at);
      return messages(departures).join();
    };
    const said = (notReady: number) =>
      `n1 waits, because the fleet is unhealthy: ${notReady} of 6 nodes of the policy spot are not Ready.`;
    expect(look(4, now)).toBe(said(4));
    expect(look(5, plus(now, minutes(9)))).toBe(said(4));
    expect(look(5, plus(now, minutes(10)))).toBe(said(5));
    expect(look(4, plus(now, minutes(19)))).toBe(said(5));
    const [before] = departures;
    expect(look(5, plus(now, hours(1)))).toBe(said(5));
    expect(departures[0]).toBe(before);
  });

  const failed = (name: string, endedAt: Instant) =>
    departure({
      ...{ name, uid: name, node: { ...due.node, name: "n9", uid: name } },
      status: {
        ...{ phase: "Ended", outcome: "RolledBack", timeline: [] },
        ...{ startedAt: minus(endedAt, minutes(9)), endedAt },
      },
    });

  it("names the departure that halts the waves now", () => {
    const policies = [{ ...spot, waves: { sizes: [{ count: 1 }, { count: 2 }] } }];
    const first = failed("n8-1", minus(now, hours(2)));
    const look = (departures: readonly Departure[]) =>
      afterPass(world({ policies, departures }), now);
    const held = look([due, first]);
    expect(messages(held).join()).toContain("because the departure n8-1 ended as RolledBack");
    const again = look([...held, failed("n9-1", minus(now, hours(1)))]);
    expect(messages(again).join()).toContain("because the departure n9-1 ended as RolledBack");
    expect(look(again)).toEqual(again);
  });

  const demands = ["shop/db", "shop/web"].map((budget) => {
    return { budget, pods: 1, disruptionsAllowed: 1 };
  });
  const draining = (name: string) =>
    departure({
      ...{ name, uid: name, node: { ...due.node, name, uid: name } },
      status: { phase: "Draining", startedAt: minus(now, hours(1)), demands, timeline: [] },
    });

  it("names the drains that it waits for now, and its own drain is looked at again as before", () => {
    const message =
      "n1 waits, because its drain and another could block each other: n2, over shop/db and shop/web.";
    const held = departure({
      ...due,
      status: {
        ...{ phase: "Held", reason: "ConflictWait", message, demands },
        timeline: [
          { at: now, step: "Preparing", result: "Due: n1 leaves" },
          { at: now, step: "Held", result: `Blocked: ${message}` },
        ],
      },
    });
    const nodes = ["n1", "n2", "n3"].map((name) =>
      node({ name, uid: name === "n1" ? due.node.uid : name, unschedulable: name !== "n1" }),
    );
    const look = (departures: readonly Departure[], at: Instant) =>
      afterPass(world({ nodes, departures }), at);
    const same = [held, draining("n2")];
    expect(look(same, plus(now, minutes(1)))).toEqual(same);
    const again = look([held, draining("n3")], plus(now, minutes(9)));
    expect(again[0]?.status).toMatchObject({
      ...{ phase: "Held", reason: "ConflictWait", demands },
      message: message.replace("n2", "n3"),
    });
    const started = inShort(world({ nodes, departures: again }), plus(now, minutes(10)));
    expect(started).toContain("Begin Due: Spaced");
  });
});

it("a hold for another reason takes its place in one write, and its condition stays true", () => {
  const gates = { blockingPods: [], freezeUntil: plus(now, hours(1)) };
  const frozen = afterPass(world({ departures: [due], policies: [{ ...spot, gates }] }), now);
  expect(frozen[0]?.status).toMatchObject({ phase: "Held", reason: "Frozen" });
  const policies = [{ ...spot, paused: true }];
  const later = plus(now, minutes(1));
  const [paused] = afterPass(world({ departures: frozen, policies }), later);
  expect(paused?.status).toMatchObject({ phase: "Held", reason: "PolicyPaused" });
  expect(paused?.status.timeline.map(({ step }) => step)).toEqual(["Held", "Held"]);
  const held = paused && conditionsOf(paused.status).find(({ type }) => type === "Held");
  expect(held).toMatchObject({ status: "True", lastTransitionTime: now });
});

const leaving = departure({
  ...{ name: "n2", uid: "n2", node: { ...due.node, name: "n2", uid: "n2" } },
  status: { phase: "Draining", startedAt: minus(now, hours(1)), timeline: [] },
});
const one = [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }] as const;
const gates = { blockingPods: [] };

const away = { kind: "Problem", reason: "CloudUnreachable", detail: "timed out" } as const;

/** What holds a departure, in the order of the glossary. */
const holds: readonly (readonly [string, Partial<Snapshot>])[] = [
  ["OnHold", { nodes: [node({ annotations: { "lastcall.dev/hold": "true" } })] }],
  ["LeftToOthers", { nodes: [node({ taints: [{ key: "karpenter.sh/disrupted" } as never] })] }],
  ["PolicyPaused", { policies: [{ ...spot, paused: true }] }],
  [
    "BudgetSpent",
    {
      policies: [{ ...spot, budgets: one }],
      nodes: [node(), node({ name: "n2", uid: "n2", unschedulable: true })],
      departures: [due, leaving],
    },
  ],
  [
    "WaveWait",
    { policies: [{ ...spot, waves: { sizes: [{ count: 1 }] } }], departures: [due, leaving] },
  ],
  ["Frozen", { policies: [{ ...spot, gates: { ...gates, freezeUntil: plus(now, hours(2)) } }] }],
  ["HeldByPerson", { departures: [{ ...due, hold: true }] }],
  ["CordonedByOthers", { nodes: [node({ unschedulable: true })] }],
  ["CloudUnreachable", { releaseAnswers: new Map([[due.node.uid, away]]) }],
  ["ReleaseImpossible", { releaseAnswers: new Map([[due.node.uid, impossible("no right")]]) }],
];

it.each(holds)("a departure held by %s is written once while nothing changes", (reason, more) => {
  const first = world({ departures: [due], ...more });
  const held = afterPass(first, now);
  expect(held[0]?.status).toMatchObject({ phase: "Held", reason });
  for (const later of [seconds(1), minutes(1), minutes(30)]) {
    expect(afterPass({ ...first, departures: held }, plus(now, later))).toEqual(held);
  }
});
