import { spotReadiness } from "../../src/audit/audit.ts";
import { forcedSays } from "../../src/board/act/act-says.ts";
import { storyText } from "../../src/board/demo-picture.ts";
import { endSentence } from "../../src/board/outcome/ended-departures.ts";
import type { Departure, DrainCounts } from "../../src/core/departure/departure.ts";
import { explainWaves, type WaveStanding } from "../../src/core/limits/budget.ts";
import { unhealthyHold } from "../../src/core/limits/fleet-health.ts";
import { explainRelease } from "../../src/core/plan/explain-forecast.ts";
import type { PolicyPlan } from "../../src/core/plan/fleet-plan.ts";
import { fleetHeadline, type HeadlineFacts } from "../../src/core/plan/headline.ts";
import { planFleet } from "../../src/core/plan/plan.ts";
import { policyStanding } from "../../src/core/plan/policy-standing.ts";
import type { ReleaseStanding } from "../../src/core/policy/release-answer.ts";
import type { Saying } from "../../src/core/reason/english.ts";
import { hours, plus } from "../../src/core/time/time.ts";
import { type DoctorFacts, known } from "../../src/doctor/facts.ts";
import { doctorReport } from "../../src/doctor/report.ts";
import { demoWords } from "../../src/web/demo/demo-words.ts";
import { english } from "../../src/web/words/words-english.ts";
import { aDeparture, aNode, aPolicy, at } from "../core/fleet-builder.ts";
import { budgetOf, green, nodeOf } from "../doctor/green-facts.ts";
import { pod } from "../doctor/red-cases.ts";
import { forecastSentences, inTime, type Row } from "./forecast-sentences.ts";

/** SentenceTable that name a number, each with none, one, two and a thousand. */

const now = at("2026-11-20T12:00:00Z");
const names = (count: number) => Array.from({ length: count }, (_, place) => `n${place + 1}`);
const nodes = (count: number) => names(count).map((name) => aNode(name, { createdAt: now }));

function headline(subject: string, facts: Partial<HeadlineFacts>): Saying {
  const fleet = { nodes: [], policies: [aPolicy()], departures: [], badPolicies: [], ...facts };
  const lines = fleetHeadline({ ...fleet, plan: planFleet({ ...fleet, at: now }) });
  return lines.find((line) => line.subject === subject)?.says ?? "";
}

/** Of a policy with one departure. */
function standing(count: number, fields: Partial<PolicyPlan>, blocked: readonly string[] = []) {
  const departures = [{ node: { name: "n1" } }];
  const plan = {
    ...{ policy: aPolicy(), matched: 1, held: 0, departures, forecast: inTime, health: {} },
    ...{ spacing: { reachedMs: null, wantedMs: null }, ...(count === 0 ? {} : fields) },
  } as unknown as PolicyPlan;
  return policyStanding(plan, blocked.map(() => ({ detail: "x" })) as never).explain;
}

const lateMachines = (count: number) =>
  unhealthyHold({
    ...{ policy: aPolicy(), tally: { nodes: 1, notReady: 0 }, cluster: { nodes: 1, notReady: 0 } },
    missing: names(count).map((name) => ({ departure: { node: { name } }, goneAt: now })) as never,
    at: plus(now, hours(24)),
  });

const agents = (count: number) => ({
  operation: {
    controller: { kind: "None" },
    agents: { kind: "Found", ready: count, wanted: count },
  } as const,
});

const ended = (drain: Partial<DrainCounts>) =>
  endSentence({
    node: { name: "n1" },
    status: { phase: "Ended", outcome: "Expired", timeline: [], drain },
  } as unknown as Departure);

const waves = (of: number) =>
  explainWaves({
    state: "Passed",
    wave: of,
    of,
    size: 1,
    succeeded: 1,
    underWay: 0,
  } as WaveStanding);

const wave = (count: number) =>
  explainWaves({
    ...{ state: "Open", wave: 1, of: 3, size: 1000, succeeded: count, underWay: count },
  } as unknown as WaveStanding);

function doctor(id: string, facts: Partial<DoctorFacts>): string {
  return doctorReport({ ...green, ...facts }).checks.find((one) => one.id === id)?.message ?? "";
}

const withAgents = (count: number) => {
  const agent = { ...pod, component: "agent", ready: true };
  return {
    nodes: known(names(count).map((name) => nodeOf(name))),
    ownPods: known(names(count).map((node) => ({ ...agent, node }))),
  } as Partial<DoctorFacts>;
};

const notStarted = (count: number) =>
  ({
    ownPods: known(names(count).map((name) => ({ ...pod, name, waiting: "ErrImagePull" }))),
  }) as Partial<DoctorFacts>;

const released = (count: number) =>
  explainRelease(
    { reason: "ReleaseImpossible", detail: "no token", nodes: names(count) } as ReleaseStanding,
    count,
  );

const story = (nodesLeft: number) =>
  storyText(
    { kind: "OneByOne", nodes: 1000, nodesLeft, limitAt: now } as Parameters<typeof storyText>[0],
    now,
    () => "0s",
  ).split(".")[0] ?? "";

const clean = (workloads: number) =>
  spotReadiness({ workloads, platforms: [], counts: [], worst: undefined } as never).message;

export const sentenceTable: readonly Row[] = [
  ...forecastSentences,
  [
    "no machine can be released",
    released,
    "the controller found: no token",
    "The only departure cannot start: no token",
    "Neither departure can start: no token",
    "None of 1000 departures can start: no token",
  ],
  [
    "paused",
    (count) => {
      const plan = { policy: aPolicy({ paused: true }), matched: count } as PolicyPlan;
      return policyStanding(plan, []).explain;
    },
    "The policy is paused, and selects no node",
    "The policy is paused: 1 node without a departure time",
    "The policy is paused: 2 nodes without a departure time",
    "The policy is paused: 1000 nodes without a departure time",
  ],
  [
    "an unhealthy fleet",
    (count) => {
      const all = nodes(count).map((node) => ({ ...node, ready: false }));
      return headline("Policy", { nodes: all });
    },
    "It selects no node: compare its nodeSelector with the labels of the nodes",
    "The departure is on schedule",
    "No voluntary departure starts, because the fleet is unhealthy: 2 of 2 nodes of the cluster are not Ready",
    "No voluntary departure starts, because the fleet is unhealthy: 1000 of 1000 nodes of the policy spot are not Ready",
  ],
  [
    "machines that are late",
    (count) => standing(count, { health: { hold: lateMachines(count) } as never }),
    "The departure is on schedule",
    "No voluntary departure starts, because the fleet is unhealthy: nothing has replaced n1 since 2026-11-20T12:00:00.000Z",
    "No voluntary departure starts, because the fleet is unhealthy: nothing has replaced n1 since 2026-11-20T12:00:00.000Z, and 1 more",
    "No voluntary departure starts, because the fleet is unhealthy: nothing has replaced n1 since 2026-11-20T12:00:00.000Z, and 999 more",
  ],
  [
    "nodes that an unreadable policy might own",
    (count) => standing(count, {}, names(count)),
    "The departure is on schedule",
    "1 node is held back, because a policy that might own it cannot be read: x. The departure is on schedule",
    "2 nodes are held back, because a policy that might own them cannot be read: x. The departure is on schedule",
    "1000 nodes are held back, because a policy that might own them cannot be read: x. The departure is on schedule",
  ],
  [
    "waves that are over",
    waves,
    "no wave has succeeded",
    "the wave has succeeded",
    "both waves have succeeded",
    "all 1000 waves have succeeded",
  ],
  [
    "a wave",
    wave,
    "wave 1 of 3: 0 of 1000 have succeeded, 0 are under way",
    "wave 1 of 3: 1 of 1000 has succeeded, 1 is under way",
    "wave 1 of 3: 2 of 1000 have succeeded, 2 are under way",
    "wave 1 of 3: 1000 of 1000 have succeeded, 1000 are under way",
  ],
  [
    "nodes that leave",
    (count) => {
      const status = { phase: "Draining", startedAt: now } as never;
      const all = nodes(count);
      return headline("Leaving", {
        nodes: all,
        departures: all.map((node) => aDeparture(node, { status })),
      });
    },
    "No node is leaving now",
    "1 node is leaving now (n1)",
    "2 nodes are leaving now (n1, n2)",
    "1000 nodes are leaving now (n1, n2, n3 and 997 more)",
  ],
  [
    "nodes on hold",
    (count) => {
      const annotations = { "lastcall.dev/hold": "true" };
      return headline("Held", { nodes: nodes(count).map((node) => ({ ...node, annotations })) });
    },
    "",
    "1 node is on hold (n1)",
    "2 nodes are on hold (n1, n2)",
    "1000 nodes are on hold (n1, n2, n3 and 997 more)",
  ],
  [
    "agents",
    (count) => headline("Agents", agents(count)),
    "The agent is installed, and fits on no node",
    "1 of 1 is ready",
    "2 of 2 are ready",
    "1000 of 1000 are ready",
  ],
  [
    "a policy that cannot be read",
    (count) =>
      headline("Policy", {
        ...{ nodes: nodes(count), policies: [] },
        badPolicies: [{ name: "spot", problem: "no" }],
      } as Partial<HeadlineFacts>),
    "It cannot be read: no",
    "It cannot be read, and its node stays: no",
    "It cannot be read, and its 2 nodes stay: no",
    "It cannot be read, and its 1000 nodes stay: no",
  ],
  [
    "pods that were drained",
    (total) => ended({ total, left: 0 }),
    "n1 is gone; it had no pods to drain.",
    "n1 is gone; its pod was drained before.",
    "n1 is gone; both pods were drained before.",
    "n1 is gone; all 1000 pods were drained before.",
  ],
  [
    "pods that were not",
    (total) => ended({ total, left: total }),
    "n1 is gone; it had no pods to drain.",
    "n1 is gone; its pod was not drained before.",
    "n1 is gone; both pods were not drained before.",
    "n1 is gone; all 1000 pods were not drained before.",
  ],
  [
    "agents on Spot nodes",
    (count) => doctor("agents", withAgents(count)),
    "there is no Spot node",
    "an agent runs on the Spot node",
    "an agent runs on each of 2 Spot nodes",
    "an agent runs on each of 1000 Spot nodes",
  ],
  [
    "budgets",
    (count) => doctor("budgets", { budgets: known(names(count).map(() => budgetOf())) }),
    "there is no PodDisruptionBudget",
    "1 budget, it can allow an eviction",
    "2 budgets, each can allow an eviction",
    "1000 budgets, each can allow an eviction",
  ],
  [
    "pods that cannot start",
    (count) => doctor("images", notStarted(count)),
    "no pod of Lastcall was found",
    "1 pod cannot start: n1 (ErrImagePull)",
    "2 pods cannot start: n1 (ErrImagePull), n2 (ErrImagePull)",
    "1000 pods cannot start: n1 (ErrImagePull), n2 (ErrImagePull), n3 (ErrImagePull) and 997 more",
  ],
  [
    "workloads without findings",
    clean,
    "No workload can be judged.",
    "No findings for 1 workload on these nodes.",
    "No findings for 2 workloads on these nodes.",
    "No findings for 1000 workloads on these nodes.",
  ],
  [
    "a freeze",
    (count) => forcedSays(names(count).map((name) => ({ name, deadlineAt: now }))),
    "",
    "n1 leaves at its deadline 2026-11-20T12:00:00Z even so",
    "2 nodes leave at their deadlines even so, the first at 2026-11-20T12:00:00Z: n1",
    "1000 nodes leave at their deadlines even so, the first at 2026-11-20T12:00:00Z: n1",
  ],
  [
    "the demo's story",
    story,
    "With Lastcall all 1000 nodes have left one by one, drained and replaced",
    "With Lastcall nodes leave one by one, drained and replaced: 1 of 1000 is still to go",
    "With Lastcall nodes leave one by one, drained and replaced: 2 of 1000 are still to go",
    "With Lastcall nodes leave one by one, drained and replaced: 1000 of 1000 are still to go",
  ],
  [
    "the board: pods still there",
    (count) => english.podsLeft(count, count),
    "0 of 0 pods still there",
    "1 of 1 pod still there",
    "2 of 2 pods still there",
    "1000 of 1000 pods still there",
  ],
  ["the board: nodes of a policy", english.matched, "0 nodes", "1 node", "2 nodes", "1000 nodes"],
  [
    "the board: a changed plan",
    english.whatIfMoved,
    "0 departures would move.",
    "1 departure would move.",
    "2 departures would move.",
    "1000 departures would move.",
  ],
  [
    "the board: beyond the edge",
    english.beyond,
    "0 departures later →",
    "1 departure later →",
    "2 departures later →",
    "1000 departures later →",
  ],
  [
    "the board: pods that stay",
    english.skippedPods,
    "0 pods not touched",
    "1 pod not touched",
    "2 pods not touched",
    "1000 pods not touched",
  ],
  [
    "the demo: more nodes",
    demoWords.en.more,
    "and 0 more nodes",
    "and 1 more node",
    "and 2 more nodes",
    "and 1000 more nodes",
  ],
];
