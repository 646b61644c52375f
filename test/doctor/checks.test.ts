import { describe, expect, it } from "vitest";
import { hours, millis, minus, seconds } from "../../src/core/time/time.ts";
import { type DoctorFacts, known, type PolicyState, unknown } from "../../src/doctor/facts.ts";
import { checkList, doctorReport, isRefused } from "../../src/doctor/report.ts";
import { LastcallError } from "../../src/errors.ts";
import { doctorFaults } from "../e2e/doctor-faults.ts";
import { acting, at, budgetOf, departureOf, green, nodeOf, policyOf } from "./green-facts.ts";

function knownIn<Value>(fact: { kind: string; value?: Value }): Value {
  return fact.value as Value;
}

const controller = knownIn(green.controller) as object;
const withController = (more: object) =>
  ({ controller: known({ ...controller, ...more }) }) as Partial<DoctorFacts>;
const withPolicies = (...policies: ReturnType<typeof policyOf>[]) => ({
  policies: known({ policies, bad: [], states: new Map() }),
});
const withActions = (notReady?: PolicyState["notReady"], observedGeneration?: number) => ({
  policies: known({
    policies: [policyOf("spot", { actions: [acting] })],
    bad: [],
    states: new Map([["spot", { observedGeneration, infeasible: undefined, notReady }]]),
  }),
});
const [pod] = knownIn(green.ownPods) as [object];
const [machine] = knownIn(green.machines) as [object];
const withMachine = (more: object) =>
  ({ machines: known([{ ...machine, ...more }]) }) as Partial<DoctorFacts>;
const denied = new LastcallError("CLOUD_RIGHT_MISSING", "the permission x is missing");
const stranger = new LastcallError("CLOUD_CREDENTIALS", "no credentials", { retryable: true });
const lease = (more: object) =>
  ({
    lease: known({ holder: "c-1", renewedAt: at, durationMs: seconds(40), ...more }),
  }) as Partial<DoctorFacts>;
const definitions = (more: object) => ({
  definitions: known(
    (knownIn(green.definitions) as readonly object[]).map((one) => ({ ...one, ...more })),
  ) as DoctorFacts["definitions"],
});

const red: readonly [string, "Warn" | "Fail" | "Skip", string, Partial<DoctorFacts>][] = [
  ["api", "Fail", "no answer", { api: unknown("no answer") }],
  ["api", "Warn", "Kubernetes v1.29.1", { api: known({ major: 1, minor: 29, name: "v1.29.1" }) }],
  ["clock", "Warn", "3 s ahead of", { clockAheadMs: known(millis(3000)) }],
  ["clock", "Fail", "20 s behind", { clockAheadMs: known(millis(-20_000)) }],
  ["crds", "Fail", "departures.lastcall.dev", { definitions: known([]) }],
  ["crds", "Fail", "not served", definitions({ established: false })],
  ["crd-version", "Fail", "does not serve v1alpha1", definitions({ served: ["v1"] })],
  ["crd-version", "Warn", "is not that of 1.2.3", definitions({ sameSchema: false })],
  [
    "rights",
    "Fail",
    "may not list nodes",
    { rights: known([{ name: "list nodes", allowed: false }]) },
  ],
  ["agent-rights", "Fail", "may not", { agentRights: known([{ name: "x", allowed: false }]) }],
  [
    "reader",
    "Warn",
    "1 request refused",
    { budgets: unknown("no", new LastcallError("RIGHT_MISSING", "no")) },
  ],
  [
    "admission",
    "Warn",
    "lastcall-agent",
    { admissionPolicies: known(new Set(["lastcall-placeholder"])) },
  ],
  [
    "priority-quota",
    "Fail",
    "system-node-critical",
    { quotaClasses: known(new Set(["system-cluster-critical"])) },
  ],
  ["controller", "Fail", "no controller is installed", { controller: known(undefined) }],
  ["controller", "Fail", "none of", withController({ ready: 0 })],
  ["controller", "Warn", "1 of the controller's 2", withController({ ready: 1 })],
  ["controller", "Warn", "no standby", withController({ ready: 1, wanted: 1 })],
  ["lease", "Fail", "no controller has ever led", { lease: known(undefined) }],
  ["lease", "Fail", "was released", lease({ holder: undefined })],
  ["lease", "Fail", "last renewed 60 s ago", lease({ renewedAt: minus(at, seconds(60)) })],
  ["lease", "Fail", "last renewed 50h3m ago", lease({ renewedAt: minus(at, seconds(180_185)) })],
  ["lease", "Warn", "a clock that is 30 s ahead", lease({ renewedAt: minus(at, seconds(-30)) })],
  ["dry-run", "Warn", "writes nothing", withController({ options: { "dry-run": "true" } })],
  ["chart", "Warn", "the controller is 1.2.2", withController({ image: "lastcall:1.2.2" })],
  [
    "images",
    "Fail",
    "c-1 (ImagePullBackOff)",
    { ownPods: known([{ ...pod, waiting: "ImagePullBackOff" }]) as DoctorFacts["ownPods"] },
  ],
  [
    "placement",
    "Warn",
    "c-1 on n0",
    { ownPods: known([{ ...pod, node: "n0" }]) as DoctorFacts["ownPods"] },
  ],
  ["left-pods", "Warn", "2 pods left", { leftPods: known(["default/a", "default/b"]) }],
  ["placeholder-image", "Fail", "is missing", { priorityClasses: known(new Set<string>()) }],
  [
    "placeholder-image",
    "Fail",
    "cannot pull",
    {
      ownPods: known([
        { ...pod, component: "placeholder", waiting: "ErrImagePull" },
      ]) as DoctorFacts["ownPods"],
    },
  ],
  ["service-account", "Fail", "its node's network", withController({ hostNetwork: true })],
  [
    "service-account",
    "Fail",
    "lack the label",
    { accountAnnotations: known({ "azure.workload.identity/client-id": "x" }) },
  ],
  [
    "service-account",
    "Fail",
    "not the ARN",
    { accountAnnotations: known({ "eks.amazonaws.com/role-arn": "lastcall" }) },
  ],
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
    "policy-ties",
    "Warn",
    "a, b have the same weight and select n0",
    withPolicies(policyOf("a"), policyOf("b")),
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
    { alerts: [{ policy: "spot", firing: unknown("refused") }] },
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
    "default/web",
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
];

const answerOf = (id: string, facts: DoctorFacts) =>
  doctorReport(facts).checks.find((check) => check.id === id);

describe("the doctor's checks", () => {
  it("all pass in a healthy cluster", () => {
    const { checks, summary } = doctorReport(green);
    expect(checks.filter(({ status, fix }) => status !== "Pass" || fix !== null)).toEqual([]);
    expect(summary).toEqual({ Pass: checkList.length, Warn: 0, Fail: 0, Skip: 0 });
  });

  it.each(red)("%s reports %s: %s", (id, status, part, change) => {
    const answer = answerOf(id, { ...green, ...change });
    expect(answer).toMatchObject({ status, message: expect.stringContaining(part) });
    if (status === "Skip") expect(answer?.fix).toBeNull();
    else expect(answer?.fix).toMatch(/\S/);
  });

  it("are at least twenty, each with a unique id, and each of them can fail", () => {
    const ids = checkList.map(({ id }) => id);
    expect(ids.length).toBeGreaterThanOrEqual(20);
    expect(new Set(ids).size).toBe(ids.length);
    const shown = new Set(red.filter(([, status]) => status !== "Skip").map(([id]) => id));
    expect(ids.filter((id) => !shown.has(id))).toEqual([]);
  });

  it("are each paired with faults for a real control plane, none of them listed twice", () => {
    const listed = new Set(doctorFaults.map(({ check }) => check));
    expect([...listed].toSorted()).toEqual(checkList.map(({ id }) => id).toSorted());
    const whats = doctorFaults.map(({ check, what }) => `${check}: ${what}`);
    expect(new Set(whats).size).toBe(whats.length);
  });

  it("say why if nothing can be queried, and only the API check fails", () => {
    const none = unknown("nobody answers");
    const facts = Object.entries(green).map(([name, fact]) =>
      (fact as { kind?: string }).kind === "Known" ? [name, none] : [name, fact],
    );
    const { checks } = doctorReport({ ...Object.fromEntries(facts), alerts: [] } as DoctorFacts);
    const told = checks
      .filter(({ status }) => status !== "Skip")
      .map(({ id, status }) => [id, status]);
    expect(told).toEqual([["api", "Fail"]]);
  });
});

describe("the doctor's exit code", () => {
  const warned = doctorReport({ ...green, grace: known({ errors: 1, worst: undefined }) });
  const failed = doctorReport({ ...green, definitions: known([]) });
  it.each([
    ["all passes", doctorReport(green), false, false],
    ["one warns", warned, true, false],
    ["one fails", failed, true, true],
  ])("is right for both --fail-on values if %s", (_, report, onWarn, onFail) => {
    expect(isRefused(report, "warn")).toBe(onWarn);
    expect(isRefused(report, "fail")).toBe(onFail);
  });
});
