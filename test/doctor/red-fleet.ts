import { hours, minus } from "../../src/core/time/time.ts";
import { known, unknown } from "../../src/doctor/facts.ts";
import { LastcallError } from "../../src/errors.ts";
import { at, budgetOf, departureOf, nodeOf, policyOf } from "./green-facts.ts";
import {
  denied,
  type RedCase,
  stranger,
  untold,
  withActions,
  withMachine,
  withPolicies,
} from "./red-cases.ts";

const windowsSpot = { "cloud.google.com/gke-spot": "true", "kubernetes.io/os": "windows" };

export const redFleet: readonly RedCase[] = [
  ["policies", "Warn", "there is no policy", withPolicies()],
  [
    "policies",
    "Fail",
    "old cannot be read: odd",
    {
      policies: known({ policies: [], bad: [{ name: "old", problem: "odd" }], states: new Map() }),
    },
  ],
  [
    "policy-match",
    "Warn",
    "idle selects no node",
    withPolicies(
      policyOf("idle", {
        nodeSelector: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: "x", operator: "Exists" }] }],
        },
      }),
    ),
  ],
  [
    "policy-match",
    "Warn",
    "light applies to no node that it selects",
    withPolicies(policyOf("heavy", { weight: 1 }), policyOf("light")),
  ],
  [
    "policy-ties",
    "Warn",
    "a, b have the same weight and select n0",
    withPolicies(policyOf("a"), policyOf("b")),
  ],
  [
    "windows",
    "Warn",
    "spot: a node launched more than 30m before the windows shut leaves again",
    withPolicies(policyOf("spot", { windows: [{ start: "02:00", end: "03:00" }] })),
  ],
  ["paused", "Warn", "spot is paused", withPolicies(policyOf("spot", { paused: true }))],
  ["forecast", "Warn", "not written a status", withPolicies(policyOf("spot"))],
  [
    "forecast",
    "Fail",
    "too narrow",
    {
      policies: known({
        policies: [policyOf("spot")],
        bad: [],
        states: new Map([["spot", { observedGeneration: 1, infeasible: "too narrow" }]]),
      }),
    },
  ],
  [
    "forecast",
    "Warn",
    "last change of spot",
    {
      policies: known({
        policies: [policyOf("spot")],
        bad: [],
        states: new Map([["spot", { observedGeneration: 0, infeasible: undefined }]]),
      }),
    },
  ],
  ["actions", "Fail", "spot: no topic", withActions({ status: "False", message: "no topic" }, 1)],
  ["actions", "Warn", "spot: silence", withActions({ status: "Unknown", message: "silence" }, 1)],
  ["actions", "Warn", "not checked those of spot", withActions()],
  [
    "alerts",
    "Fail",
    "no response: refused",
    {
      alerts: [
        {
          policy: "spot",
          firing: unknown("refused", new LastcallError("ACTION_UNREACHABLE", "refused")),
        },
      ],
    },
  ],
  [
    "alerts",
    "Skip",
    "--action-hosts may be set in x",
    { alerts: [{ policy: "spot", firing: unknown("--action-hosts may be set in x") }] },
  ],
  ["alerts", "Warn", "spot (Down)", { alerts: [{ policy: "spot", firing: known(["Down"]) }] }],
  [
    "departures",
    "Warn",
    "1 departure due for over an hour",
    { departures: known([departureOf("n0", { departAt: minus(at, hours(2)) })]) },
  ],
  [
    "departures",
    "Warn",
    "1 departure failed within a day",
    {
      departures: known([
        departureOf("n0", {
          status: { phase: "Ended", outcome: "Failed", endedAt: at, timeline: [] },
        }),
      ]),
    },
  ],
  [
    "cloud-identity",
    "Fail",
    "no credentials",
    withMachine({ state: unknown("no credentials", stranger) }),
  ],
  [
    "cloud-identity",
    "Skip",
    "run it in the controller's pod",
    { ...withMachine({ state: unknown("no credentials", stranger) }), inPod: false },
  ],
  [
    "cloud-identity",
    "Warn",
    "away",
    withMachine({ state: unknown("away", new LastcallError("CLOUD_UNREACHABLE", "away")) }),
  ],
  [
    "cloud-permissions",
    "Fail",
    "the permission x is missing",
    withMachine({ state: unknown(denied.message, denied) }),
  ],
  [
    "cloud-permissions",
    "Fail",
    "permission y",
    withMachine({
      release: known({ kind: "Impossible", problem: "the permission y is not granted" }),
    }),
  ],
  ["machines", "Fail", "has no machine for n0", withMachine({ state: known({ kind: "Absent" }) })],
  [
    "nodes-without-machine",
    "Warn",
    "n0 no longer has a machine",
    withMachine({ nodeReady: false, state: known({ kind: "Absent" }) }),
  ],
  [
    "machines-without-node",
    "Warn",
    "1 machine without a Node: n9",
    { orphanMachines: known(["gce://demo/a/n9"]) },
  ],
  ["machines-without-node", "Skip", "refused", { orphanMachines: unknown("refused") }],
  [
    "machines-without-node",
    "Skip",
    "no lookup of a machine succeeded",
    withMachine({ state: unknown("no credentials") }),
  ],
  [
    "launch-times",
    "Warn",
    "for n0, the age of the Node",
    withMachine({ state: known({ kind: "Present", running: true, launchKnown: false }) }),
  ],
  [
    "provider-id",
    "Fail",
    "the machine of n0 is not known",
    { nodes: known([nodeOf("n0", { providerID: undefined })]) },
  ],
  [
    "release",
    "Fail",
    "of n0 could not be released: no group",
    withMachine({ release: known({ kind: "Impossible", problem: "no group" }) }),
  ],
  [
    "release",
    "Skip",
    "run it in the controller's pod",
    { ...withMachine({ release: unknown("no credentials", stranger) }), inPod: false },
  ],
  ["queue", "Warn", "500 messages waiting", { queue: known({ waiting: 500, inFlight: 0 }) }],
  [
    "queue",
    "Fail",
    "no such queue",
    { queue: unknown("no such queue", new LastcallError("CLOUD_REFUSED", "x")) },
  ],
  ["queue", "Skip", "refused", { queue: unknown("refused") }],
  ["agents", "Warn", "no agent is installed", { agent: known(undefined) }],
  [
    "agents",
    "Warn",
    "no agent can run on 1 Windows node: w0",
    { nodes: known([nodeOf("w0", { labels: windowsSpot })]) },
  ],
  ["agents", "Fail", "2 Spot nodes without a Ready agent: n0, n1", { ownPods: known([]) }],
  [
    "other-tools",
    "Warn",
    "nth (x)",
    { otherTools: known([{ tool: "nth", place: "x", rival: true }]) },
  ],
  [
    "other-marks",
    "Warn",
    "n0 (Karpenter)",
    {
      nodes: known([
        nodeOf("n0", { taints: [{ key: "karpenter.sh/disrupted", effect: "NoSchedule" }] }),
      ]),
    },
  ],
  [
    "marks",
    "Warn",
    "n7",
    {
      nodes: known([
        nodeOf("n7", { taints: [{ key: "lastcall.dev/departing", effect: "NoSchedule" }] }),
      ]),
    },
  ],
  [
    "budgets",
    "Fail",
    "default/web",
    { budgets: known([budgetOf({ maxUnavailable: 0, disruptionsAllowed: 0 })]) },
  ],
  [
    "budgets",
    "Fail",
    "default/web (allows none while the disruption controller cannot compute it: no scale)",
    { budgets: known([budgetOf({ disruptionsAllowed: 0, syncFailure: "no scale" })]) },
  ],
  [
    "budgets",
    "Fail",
    "default/web (expects no pods",
    { budgets: known([budgetOf({ disruptionsAllowed: 0, expectedPods: 0, currentHealthy: 2 })]) },
  ],
  [
    "budgets",
    "Fail",
    "default/web (requires minAvailable 100%",
    { budgets: known([budgetOf({ maxUnavailable: undefined, minAvailable: "100%" })]) },
  ],
  [
    "grace",
    "Warn",
    "3 errors, the first: grace-cut of Deployment default/web",
    { grace: known({ errors: 3, worst: "grace-cut of Deployment default/web" }) },
  ],
  [
    "spot-nodes",
    "Warn",
    "no node is labelled as Spot",
    { ...withPolicies(), nodes: known([nodeOf("m", { labels: {} })]) },
  ],
  [
    "spot-nodes",
    "Warn",
    "no label of i-1 tells whether it is Spot",
    { nodes: known([nodeOf("n0"), nodeOf("i-1", untold)]) },
  ],
];
