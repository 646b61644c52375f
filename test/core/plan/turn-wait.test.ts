import { describe, expect, it } from "vitest";
import { boardPicture } from "../../../src/board/picture.ts";
import { noRights } from "../../../src/board/stream.ts";
import { decide } from "../../../src/core/decide.ts";
import type { Snapshot } from "../../../src/core/departure/decision.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { explainForecast } from "../../../src/core/plan/explain-forecast.ts";
import { fleetHeadline } from "../../../src/core/plan/headline.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { inEnglish } from "../../../src/core/reason/english.ts";
import { explain } from "../../../src/core/reason/reason.ts";
import { hours, type Instant, minus, minutes, plus } from "../../../src/core/time/time.ts";
import { translated } from "../../../src/web/words/translated.ts";
import { aDeparture, aNode, aPolicy, at, daily, everyMachine } from "../fleet-builder.ts";

/** Two nodes were due at once; the first has started, and the other one waits for its turn. */
const now = at("2026-11-20T12:05:00Z");
const dueAt = at("2026-11-20T12:00:00Z");
const turnAt = plus(dueAt, minutes(15));
const nodes = ["n0", "n1"].map((name) => aNode(name, { createdAt: minus(now, hours(20)) }));

function departuresWith(status: Partial<Departure["status"]>): readonly Departure[] {
  return nodes.map((node, place) =>
    aDeparture(node, {
      ...{ departAt: dueAt, deadlineAt: plus(now, hours(3.5)), createdAt: minus(now, hours(1)) },
      status:
        place === 0 ? { phase: "Draining", startedAt: dueAt } : { phase: "Scheduled", ...status },
    }),
  );
}

const policies = [aPolicy()];
const fleetOf = (departures: readonly Departure[]) => ({
  ...{ policies, badPolicies: [], nodes, departures },
});

it("a due departure is expected when its turn comes, and not on schedule until then", () => {
  const fleet = fleetOf(departuresWith({}));
  const plan = planFleet({ ...fleet, at: now });
  const [spot] = plan.policies;
  expect(spot?.departures.map(({ heldBackTo }) => heldBackTo)).toEqual([turnAt]);
  expect(spot && inEnglish(explainForecast(spot))).toBe("The departure is held back");
  const next = fleetHeadline({ ...fleet, plan }).find(({ subject }) => subject === "Next");
  expect(next && inEnglish(next.says)).toBe("n1 leaves at 2026-11-20T12:15:00.000Z");
});

const state = {
  ...{ cluster: "prod", isDemo: false, missing: [], rights: noRights },
  ...{ isCounted: false, connection: { kind: "Live" } as const },
};
const pictureAt = (departures: readonly Departure[], when: Instant) =>
  boardPicture(fleetOf(departures), { now: when, state });

it("its row does not claim that nothing starts it", () => {
  const { rows } = pictureAt(departuresWith({}), now);
  expect(rows.find(({ node }) => node === "n1")).toMatchObject({
    ...{ state: "Scheduled", departAt: dueAt, heldBackTo: turnAt },
  });
});

it.each(["ConflictWait", "Frozen"] as const)(
  "nothing is expected while it is held: %s",
  (reason) => {
    const plan = planFleet({ ...fleetOf(departuresWith({ phase: "Held", reason })), at: now });
    expect(plan.policies[0]?.departures.map(({ heldBackTo }) => heldBackTo)).toEqual([undefined]);
    expect(plan.policies[0]?.held).toBe(1);
  },
);

it("a freeze and a closed window move the expected time", () => {
  const fleet = fleetOf(departuresWith({}));
  const frozen = aPolicy({ gates: { blockingPods: [], freezeUntil: at("2026-11-20T13:00:00Z") } });
  const shut = aPolicy({ windows: [daily("12:10-13:30", { type: "Deny" })] });
  const expected = [frozen, shut].map((policy) => {
    const [made] = planFleet({ ...fleet, policies: [policy], at: now }).policies;
    return made?.departures[0]?.heldBackTo;
  });
  expect(expected).toEqual([at("2026-11-20T13:00:00Z"), at("2026-11-20T13:30:00Z")]);
});

it("a freeze and a closed window move it no further than to the deadline, which forces it", () => {
  const fleet = fleetOf(departuresWith({}));
  const frozen = aPolicy({ gates: { blockingPods: [], freezeUntil: plus(now, hours(9)) } });
  const shut = aPolicy({ windows: [daily("12:10-20:00", { type: "Deny" })] });
  const expected = [frozen, shut].map((policy) => {
    const [made] = planFleet({ ...fleet, policies: [policy], at: now }).policies;
    return made?.departures[0]?.heldBackTo;
  });
  expect(expected).toEqual([plus(now, hours(3.5)), plus(now, hours(3.5))]);
});

describe("a hold that ends while its departure waits for its turn", () => {
  const notesOf = (departures: readonly Departure[], more: Partial<Snapshot> = {}) =>
    decide(
      { ...fleetOf(departures), gateAnswers: {}, releaseAnswers: everyMachine, ...more },
      now,
    ).decisions.flatMap((one) => (one.kind === "Note" ? `${one.event}: ${one.explain}` : []));
  const waits = ["Unblocked: n1 waits for its turn at 2026-11-20T12:15:00.000Z."];

  it.each([
    "HeldByPerson",
    "Frozen",
    "OnHold",
    "OutsideWindow",
    "FleetUnhealthy",
    "WaveWait",
  ] as const)("is no longer shown: %s", (reason) => {
    expect(notesOf(departuresWith({ phase: "Held", reason }))).toEqual(waits);
  });

  it("is shown as long as it lasts", () => {
    const [first, second] = departuresWith({ phase: "Held", reason: "HeldByPerson" });
    const held = [first, second && { ...second, hold: true }].filter((one) => one !== undefined);
    expect(notesOf(held)).toEqual([]);
  });

  it("is shown while nobody knows whether it lasts", () => {
    const release = departuresWith({ phase: "Held", reason: "ReleaseImpossible" });
    expect(notesOf(release, { releaseAnswers: new Map() })).toEqual([]);
    const pods = departuresWith({ phase: "Held", reason: "BlockingPod" });
    const gates = { blockingPods: [{ matchLabels: {}, matchExpressions: [] }] };
    expect(notesOf(pods, { policies: [aPolicy({ gates })] })).toEqual([]);
  });

  it("keeps its place in the queue of a budget, which its record shows", () => {
    expect(notesOf(departuresWith({ phase: "Held", reason: "BudgetSpent" }))).toEqual([]);
  });
});

describe("a departure that a budget held", () => {
  const held = departuresWith({ phase: "Held", reason: "BudgetSpent", message: "as recorded" });
  const rowAt = (when: Instant) => {
    const found = pictureAt(held, when);
    return found.rows.find(({ node }) => node === "n1");
  };

  it("waits for its turn, once the budget no longer holds it", () => {
    const row = rowAt(now);
    expect(row).toMatchObject({ state: "Scheduled", heldBackTo: turnAt });
    expect(row?.explain).not.toContain("as recorded");
    const plan = planFleet({ ...fleetOf(held), at: now });
    const [policy] = fleetHeadline({ ...fleetOf(held), plan });
    expect(policy).toMatchObject({ tone: "Note", waiting: [] });
  });

  it("is held by it when its turn has come", () => {
    const row = rowAt(turnAt);
    expect(row).toMatchObject({ state: "Held", reason: "BudgetSpent", explain: "as recorded" });
    const plan = planFleet({ ...fleetOf(held), at: turnAt });
    const [policy] = fleetHeadline({ ...fleetOf(held), plan });
    expect(policy?.waiting).toEqual([{ reason: "BudgetSpent", departures: 1 }]);
  });

  it("is still held by it as long as nobody has moved it to the time that it is planned for", () => {
    const policies = [aPolicy({ windows: [daily("22:00-06:00")] })];
    const young = aNode("n1", { createdAt: minus(now, hours(2)) });
    const night = { ...fleetOf(held.slice(1)), nodes: [young], policies };
    const [row] = boardPicture(night, { now, state }).rows;
    expect(planFleet({ ...night, at: now }).policies[0]?.departures[0]?.departAt).toBeGreaterThan(
      now,
    );
    expect(row).toMatchObject({ state: "Held", explain: "as recorded" });
  });

  it("has a record that is true until its turn", () => {
    const detail = "1 node of the policy spot was out, and at most 1 may be";
    expect(explain("BudgetSpent", { node: "n1", detail })).toBe(
      `n1 waits, because the policy's budget was used up when it was due: ${detail}.`,
    );
  });
});

it("a departure that a budget will hold back is not on schedule", () => {
  const soon = nodes.map((node, place) =>
    aDeparture(node, {
      departAt: plus(now, minutes(60 + place)),
      deadlineAt: plus(now, hours(3.5)),
    }),
  );
  const spacing = { mode: "Late", minMs: minutes(1) } as const;
  const policy = aPolicy({
    spacing,
    budgets: [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }],
  });
  const [made] = planFleet({ ...fleetOf(soon), policies: [policy], at: now }).policies;
  expect(made?.departures.map(({ heldBackTo }) => heldBackTo !== undefined)).toEqual([false, true]);
  expect(made && inEnglish(explainForecast(made))).toBe(
    "1 of 2 departures is on schedule; budgets hold back 1 departure: 1 node at once; 2 nodes would hold none back",
  );
  expect(translated(made ? explainForecast(made) : "", "ja")).not.toMatch(/[A-Za-z]/);
});

it("departures that wait for a budget are expected when the passes override it", () => {
  const waiting = ["n1", "n2"].map((name) => aNode(name, { createdAt: minus(now, hours(23.45)) }));
  const [n0 = aNode("n0")] = nodes;
  const started = { phase: "Draining", startedAt: minus(now, minutes(10)) } as const;
  const departures = waiting.map((node) =>
    aDeparture(node, { departAt: minus(now, minutes(2)), createdAt: minus(now, hours(9)) }),
  );
  const policy = aPolicy({
    budgets: [{ kind: "Nodes", scope: "Policy", nodes: { count: 1 } }],
    drain: { ...aPolicy().drain, timeoutMs: hours(3) },
  });
  const [made] = planFleet({
    ...{ policies: [policy], badPolicies: [], nodes: [n0, ...waiting], at: now },
    departures: [aDeparture(n0, { status: started }), ...departures],
  }).policies;
  const own = (made?.departures ?? []).filter(({ node }) => node.name !== "n0");
  expect(own.map((one) => one.heldBackTo)).toEqual(own.map((one) => one.overridesBudgetAt));
  expect(made?.forecast.late).toEqual(["n1", "n2"]);
});
