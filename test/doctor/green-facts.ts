import { policyFacts } from "../../src/cli/doctor/cluster-facts.ts";
import type { NodeFacts } from "../../src/core/cluster/node.ts";
import type { BudgetFacts } from "../../src/core/cluster/pod.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import type { Policy } from "../../src/core/policy/policy.ts";
import { hours, instant, millis, minus, plus, seconds } from "../../src/core/time/time.ts";
import { type DoctorFacts, known, type MachineFacts } from "../../src/doctor/facts.ts";

export const at = instant(Date.UTC(2026, 10, 20));

export function nodeOf(name: string, more: Partial<NodeFacts> = {}): NodeFacts {
  return {
    ...{ name, uid: `uid-${name}`, providerID: `gce://demo/a/${name}` },
    ...{ labels: { "cloud.google.com/gke-spot": "true" }, annotations: {}, taints: [] },
    ...{ unschedulable: false, ready: true, createdAt: minus(at, hours(2)) },
    ...more,
  };
}

/** An action of a policy. */
export const acting = { name: "targets", at: "AtNotice", deregisterTargets: {} };

/** A policy as the API server returns it, parsed as the command parses it. */
export function policyOf(name: string, spec: object = {}): Policy {
  const object = {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" },
    ...{ metadata: { name, generation: 1 }, spec: { lifetime: { max: "24h" }, ...spec } },
  };
  const { policies, bad } = policyFacts([object]);
  if (policies[0] === undefined) throw new Error(bad[0]?.problem);
  return policies[0];
}

export function departureOf(name: string, more: Partial<Departure>): Departure {
  return {
    ...{ name, uid: name, resourceVersion: "1", node: nodeOf(name), cause: "Planned", hold: false },
    status: { phase: "Scheduled", timeline: [] },
    ...more,
  };
}

export function budgetOf(more: Partial<BudgetFacts> = {}): BudgetFacts {
  return {
    ...{ namespace: "default", name: "web", uid: "b", selector: {} as BudgetFacts["selector"] },
    ...{ unhealthyPodEvictionPolicy: "IfHealthyBudget", maxUnavailable: 1, observed: true },
    ...{ disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2 },
    ...more,
  };
}

const workload = {
  ...{
    namespace: "lastcall",
    serviceAccount: "lastcall",
    wanted: 2,
    ready: 2,
    image: "lastcall:1.2.3",
  },
  ...{ hostNetwork: false, podLabels: {}, overlaps: true },
  ...{ options: {}, hiddenOptions: [], chart: "lastcall-1.2.3" },
};
const trial = { isUsed: true, needed: { kind: "Accepted" } } as const;
const denied = { kind: "Denied", message: "denied" } as const;
const pod = { ready: true, waiting: undefined, unscheduled: undefined };
const definition = { established: true, served: ["v1alpha1"], sameSchema: true };
const machine: Omit<MachineFacts, "node"> = {
  ...{ providerID: "gce://demo/a/n0", cloud: "gcp", nodeReady: true, mode: "Recreate" },
  state: known({ kind: "Present", running: true, launchKnown: true }),
  release: known({ kind: "Possible", permission: "Granted" }),
};

/** A healthy cluster with every feature in use. */
export const green: DoctorFacts = {
  ...{ at, version: "1.2.3", inPod: true, namespace: "lastcall" },
  home: known({ exists: true, controllerIn: "lastcall" }),
  api: known({ major: 1, minor: 34, name: "v1.34.0" }),
  clockAheadMs: known(millis(0)),
  definitions: known([
    { ...definition, name: "departurepolicies.lastcall.dev" },
    { ...definition, name: "departures.lastcall.dev" },
  ]),
  rights: known([{ name: "list nodes", allowed: true }]),
  agentRights: known([{ name: "create departures.lastcall.dev", allowed: true }]),
  otherLeaders: known([]),
  lease: known({ holder: "c-1", renewedAt: minus(at, seconds(10)), durationMs: seconds(40) }),
  controller: known({ ...workload, name: "lastcall", priorityClass: "system-cluster-critical" }),
  agent: known({
    ...{ ...workload, name: "lastcall-agent", serviceAccount: "lastcall-agent" },
    priorityClass: "system-node-critical",
  }),
  ownPods: known([
    { ...pod, name: "c-1", uid: "c-1", component: "controller", node: "m0" },
    { ...pod, name: "a-0", uid: "a-0", component: "agent", node: "n0" },
    { ...pod, name: "a-1", uid: "a-1", component: "agent", node: "n1" },
  ]),
  accountAnnotations: known({}),
  nodes: known([nodeOf("n0"), nodeOf("n1"), nodeOf("m0", { labels: {} })]),
  policies: known({
    policies: [
      policyOf("spot", {
        replacement: { when: "BeforeDrain" },
        gates: { alerts: { url: "http://am:9093", matchers: ["a=b"] } },
        actions: [acting],
      }),
    ],
    bad: [],
    states: new Map([["spot", { observedGeneration: 1, infeasible: undefined }]]),
  }),
  departures: known([departureOf("n0", { departAt: plus(at, hours(1)) })]),
  budgets: known([budgetOf()]),
  otherTools: known([
    { tool: "Karpenter", place: "Deployment kube-system/karpenter", rival: false },
  ]),
  agentTrials: known([
    {
      ...{ ...trial, who: "an agent", act: "report its node", abuse: "report another node" },
      ...{ forbidden: { ...denied, policy: "lastcall-agent" }, policyFile: "agent.yaml" },
    },
  ]),
  controllerTrials: known([
    {
      ...{ ...trial, who: "the controller", act: "create a placeholder", abuse: "create a pod" },
      ...{ forbidden: { ...denied, policy: "lastcall-placeholder" }, policyFile: "base.yaml" },
    },
  ]),
  podTrials: known([
    { who: "the controller", answer: { kind: "Accepted" } },
    { who: "the agents", answer: { kind: "Accepted" } },
  ]),
  drainers: known([]),
  quotaClasses: known(new Set(["system-cluster-critical", "system-node-critical"])),
  priorityClasses: known(new Set(["lastcall-placeholder"])),
  machines: known([{ ...machine, node: "n0" }]),
  orphanMachines: known([]),
  queue: known({ waiting: 2, inFlight: 1 }),
  alerts: [{ policy: "spot", firing: known([]) }],
  failedPods: known([]),
  localVolumes: known([]),
  grace: known({ errors: 0, worst: undefined }),
};
