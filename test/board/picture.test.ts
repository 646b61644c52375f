import { expect, it } from "vitest";
import { PictureChanges } from "../../src/board/board-feed.ts";
import { EndedDepartures } from "../../src/board/outcome/ended-departures.ts";
import { boardPicture } from "../../src/board/picture.ts";
import { noRights } from "../../src/board/stream.ts";
import type { FleetView } from "../../src/contracts/cluster.ts";
import type { NodeFacts } from "../../src/core/cluster/node.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { defaultPolicy, type Policy } from "../../src/core/policy/policy.ts";
import type { ReleaseAnswers } from "../../src/core/policy/release-answer.ts";
import { inEnglish } from "../../src/core/reason/english.ts";
import {
  formatInstant,
  hours,
  type Instant,
  instant,
  minus,
  minutes,
  plus,
  seconds,
} from "../../src/core/time/time.ts";

import { daily } from "../core/fleet-builder.ts";

const now = instant(Date.UTC(2026, 10, 20, 12));
const policy: Policy = {
  ...defaultPolicy,
  name: "spot",
  lifetime: { minMs: minutes(0), maxMs: hours(24), reserveMs: minutes(30) },
};
const createdAt = minus(now, hours(3));
/** Later than its Node, as on GKE after a restart under the same name; the controller asked. */
const launchedAt = plus(createdAt, hours(2));
const deadlineAt = plus(launchedAt, minutes(23.5 * 60));

const nodeOf = (name: string): NodeFacts => ({
  ...{ name, uid: `uid-${name}`, annotations: {}, taints: [], unschedulable: false, ready: true },
  labels: { "cloud.google.com/gke-spot": "true" },
  ...{ providerID: `gce://demo/a/${name}`, createdAt },
});

function planned(name: string, fields: Partial<Departure> = {}): Departure {
  return {
    ...{ name: `${name}-1`, uid: `d-${name}`, resourceVersion: "1", createdAt, hold: false },
    node: { name, uid: `uid-${name}` },
    ...{ cause: "Planned", policy: "spot", departAt: deadlineAt, deadlineAt, launchedAt },
    status: { phase: "Scheduled", timeline: [] },
    ...fields,
  } as Departure;
}

const state = {
  ...{
    cluster: "test",
    isDemo: false,
    missing: [],
    rights: noRights,
    comparison: null,
    isCounted: false,
  },
  connection: { kind: "Live" },
} as const;

function pictureAt(at: Instant, view: Partial<FleetView>) {
  const nodes = [nodeOf("n1")];
  const whole = { nodes, departures: [], policies: [policy], badPolicies: [], ...view };
  return boardPicture(whole, { now: at, state, ended: new EndedDepartures() });
}

it("shows the deadline that a node has by its policy although it was requested to leave", () => {
  const departAt = plus(now, hours(1));
  const own = plus(createdAt, minutes(23.5 * 60));
  const request = { cause: "Manual", deadlineAt: undefined, launchedAt: undefined } as const;
  const asked = (fields: Partial<Departure>) => planned("n1", { ...request, departAt, ...fields });
  const shown = (departure: Departure) =>
    pictureAt(now, { departures: [departure] }).rows[0]?.deadlineAt;
  const draining = { phase: "Draining", timeline: [], startedAt: now } as const;
  expect(shown(asked({}))).toBe(own);
  expect(shown(asked({ status: draining }))).toBe(own);
  expect(shown(asked({ deadlineAt: plus(now, hours(2)) }))).toBe(plus(now, hours(2)));
  expect(shown(asked({ deadlineAt: plus(now, hours(40)) }))).toBe(own);
  // The cloud's instant counts then.
  const takenAt = plus(now, hours(30));
  const noticed = { cause: "SpotInterruption", noticedAt: now, deadlineAt: takenAt } as const;
  expect(shown(asked(noticed))).toBe(takenAt);
});

it("does not say that no policy selects a node if policies cannot be read", () => {
  const whole = { nodes: [nodeOf("n1")], departures: [], policies: [], badPolicies: [] };
  const rowsOf = (missing: readonly string[]) =>
    boardPicture(whole, { now, state: { ...state, missing } }).rows;
  expect(rowsOf([])).toMatchObject([{ reason: "NoPolicy" }]);
  expect(rowsOf(["Cannot list departurepolicies.lastcall.dev: it is forbidden"])).toMatchObject([
    { reason: "PolicyInvalid", explain: { says: "headline.PoliciesUnread" } },
  ]);
});

it("says of a policy that a machine cannot be released", () => {
  const whole = { nodes: [nodeOf("n1")], departures: [], policies: [policy], badPolicies: [] };
  const cards = (releaseAnswers: ReleaseAnswers) =>
    boardPicture(whole, { now, state, releaseAnswers }).policies;
  expect(cards(new Map())).toMatchObject([{ standing: "InTime" }]);
  const refused = { kind: "Problem", reason: "ReleaseImpossible", detail: "no group" } as const;
  expect(cards(new Map([["uid-n1", refused]]))).toMatchObject([{ standing: "ReleaseImpossible" }]);
});

it("gives a node one deadline, that of its departure, in row and sentence", () => {
  const [row] = pictureAt(now, { departures: [planned("n1")] }).rows;
  expect(row?.deadlineAt).toBe(deadlineAt);
  expect(row?.bornAt).toBe(launchedAt);
  expect(row && inEnglish(row.explain)).toContain(`deadline ${formatInstant(deadlineAt)}`);
  expect(row && inEnglish(row.explain)).toContain(
    `launched ${formatInstant(launchedAt)} according to the cloud`,
  );
});

it("shows the plan if a person requested a time after the deadline, and otherwise the request", () => {
  const requested = (departAt: Instant) => {
    const asked = planned("n1", { name: "n1-2", uid: "asked", cause: "Manual", departAt });
    const [row] = pictureAt(now, { departures: [asked, planned("n1")] }).rows;
    return [row?.departure, row?.cause, row?.departAt];
  };
  const early = plus(now, hours(1));
  expect(requested(plus(deadlineAt, hours(6)))).toEqual(["n1-1", "Planned", deadlineAt]);
  expect(requested(early)).toEqual(["n1-2", "Manual", early]);
});

it("says who holds a node, since when and until when, as far as known", () => {
  const writer = { manager: "kubectl-annotate", at: minus(now, hours(1)) };
  const holdOf = (value: string, holdWriter: NodeFacts["holdWriter"]) => {
    const node = { ...nodeOf("n1"), annotations: { "lastcall.dev/hold": value }, holdWriter };
    return pictureAt(now, { nodes: [node] }).rows[0];
  };
  const ours = { mark: "lastcall.dev/hold", isOurs: true };
  const known = { by: "kubectl-annotate", sinceAt: minus(now, hours(1)) };
  const forGood = holdOf("true", writer);
  expect(forGood).toMatchObject({ state: "Stays", reason: "OnHold", departAt: null });
  expect(forGood?.hold).toEqual({ ...ours, ...known, untilAt: null });
  expect(holdOf(formatInstant(plus(now, hours(2))), writer)?.hold).toEqual({
    ...{ ...ours, ...known, untilAt: plus(now, hours(2)) },
  });
  expect(holdOf("true", { ...writer, user: "eve" })?.hold?.by).toBe("eve");
  expect(holdOf("true", undefined)?.hold).toEqual({
    ...{ ...ours, by: null, sinceAt: null, untilAt: null },
  });
});

it("counts from the Node object if the departure has no launch time", () => {
  const departures = [planned("n1", { launchedAt: undefined })];
  expect(pictureAt(now, { departures }).rows[0]?.bornAt).toBe(createdAt);
});

it("says in the headline that a departure is late, as the policy does", () => {
  const shut = daily("20:00-21:00");
  const whole = {
    nodes: [nodeOf("n1")],
    departures: [planned("n1", { launchedAt: minus(now, hours(22)) })],
    policies: [{ ...policy, windows: [shut] }],
    badPolicies: [],
  };
  const [line] = boardPicture(whole, { now, state }).fleet.headline;
  expect(line && inEnglish(line.says)).toContain("The departure is late");
});

it("does not change while only time passes", () => {
  const changes = new PictureChanges();
  const view = { departures: [planned("n1")] };
  expect(changes.of(pictureAt(now, view))).toBeDefined();
  expect(changes.of(pictureAt(plus(now, seconds(10)), view))).toBeUndefined();
  expect(pictureAt(now, view).rows[0]?.earliestAt).toBe(launchedAt);
});

it("does not count a departure that the plan dropped before it started", () => {
  const ended = (name: string, status: object) =>
    planned(name, {
      status: { phase: "Ended", endedAt: now, timeline: [], ...status } as Departure["status"],
    });
  const picture = pictureAt(now, {
    departures: [
      ended("n1", { outcome: "Cancelled", reason: "PlanChanged" }),
      ended("n2", { outcome: "Cancelled", reason: "CancelledByPerson", startedAt: now }),
    ],
  });
  expect(picture.fleet.days.map(({ outcomes }) => outcomes)).toEqual([{ Cancelled: 1 }]);
  expect(picture.past.map(({ node }) => node)).toEqual(["n2"]);
});

it("assigns planned departures to their waves, and those beyond the last wave to none", () => {
  const nodes = ["n1", "n2", "n3", "n4", "n5"].map(nodeOf);
  const inWaves: Policy = { ...policy, waves: { sizes: [{ count: 1 }, { count: 3 }] } };
  const { rows, policies } = pictureAt(now, { nodes, policies: [inWaves] });
  const byTime = rows.toSorted((a, b) => (a.departAt ?? 0) - (b.departAt ?? 0));
  expect(byTime.map(({ wave }) => wave)).toEqual([1, 2, 2, 2, null]);
  expect(policies[0]?.waves.map(({ wave, of }) => [wave, of])).toEqual([
    [1, 2],
    [2, 2],
  ]);
  const starts = byTime.map((row) => row.heldBackTo ?? row.departAt);
  expect(policies[0]?.waves.map(({ startAt }) => startAt)).toEqual([starts[0], starts[1]]);
});

it("counts departures that ended as planned in the current wave", () => {
  const nodes = ["n1", "n2", "n3"].map(nodeOf);
  const inWaves: Policy = { ...policy, waves: { sizes: [{ count: 2 }, { count: 1 }] } };
  const well = planned("n0", {
    status: { phase: "Ended", outcome: "Planned", startedAt: now, endedAt: now, timeline: [] },
  });
  const { rows } = pictureAt(now, { nodes, policies: [inWaves], departures: [well] });
  const byTime = rows.toSorted((a, b) => (a.departAt ?? 0) - (b.departAt ?? 0));
  expect(byTime.map(({ wave }) => wave)).toEqual([1, 2, null]);
});

it("shows no time for a planned departure of a paused policy, which does not happen", () => {
  const paused = { ...policy, paused: true };
  const rowOf = (policies: readonly Policy[], departure: Departure) =>
    pictureAt(now, { policies, departures: [departure] }).rows[0];
  expect(rowOf([policy], planned("n1"))).toMatchObject({
    ...{ state: "Scheduled", departAt: deadlineAt },
  });
  expect(rowOf([paused], planned("n1"))).toMatchObject({
    ...{ state: "Stays", departAt: null, reason: "PolicyPaused" },
  });
  const leaving = planned("n1", { status: { phase: "Draining", timeline: [] } });
  expect(rowOf([paused], leaving)).toMatchObject({ state: "Leaving" });
});
