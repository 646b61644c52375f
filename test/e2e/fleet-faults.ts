import { formatInstant, hours } from "../../src/core/time/time.ts";
import { nodeObject } from "../support/kwok-fleet.ts";
import { generationLabel } from "./cloud.ts";
import {
  ago,
  annotated,
  type Body,
  changed,
  created,
  type Fault,
  idlePod,
  patched,
  removed,
  type Stage,
  send,
  serverTime,
  specified,
  tainted,
} from "./doctor-stage.ts";
import { makeDeparture } from "./raw-departure.ts";

const agent = "/apis/apps/v1/namespaces/lastcall/daemonsets/lastcall-agent";
const policies = "/apis/lastcall.dev/v1alpha1/departurepolicies";
const departures = "/apis/lastcall.dev/v1alpha1/departures";
const deployments = "/apis/apps/v1/namespaces/default/deployments";
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const untemplated = {
  ...{ name: "tell", at: "AtEnd" },
  sns: { topicArn: "arn:aws:sns:us-east-1:123456789012:drains", subject: "{{node" },
};

const policyFaults: readonly Fault[] = [
  {
    ...{ check: "policies", status: "Warn", what: "no policy", says: "no node is planned" },
    ...removed(`${policies}/spot`),
  },
  {
    ...{ check: "policies", status: "Fail", what: "a policy whose template does not parse" },
    says: "odd cannot be read: spec.actions[0].sns.subject",
    ...created(
      policies,
      policy("odd", { nodeSelector: ofGeneration("2"), actions: [untemplated] }),
    ),
  },
  {
    ...{ check: "policy-match", status: "Warn", what: "a policy that selects no node" },
    says: "idle selects no node",
    ...created(policies, policy("idle", { nodeSelector: ofGeneration("2") })),
  },
  {
    ...{
      check: "policy-ties",
      status: "Warn",
      what: "two policies of the same weight for one node",
    },
    says: "also, spot have the same weight",
    // The first by name has all nodes.
    also: ["policy-match"],
    ...created(policies, policy("also", { lifetime: { max: "24h" } })),
  },
  {
    ...{ check: "paused", status: "Warn", what: "a paused policy" },
    says: "spot is paused",
    ...specified({ paused: true }, { paused: null }),
  },
  {
    ...{ check: "paused", status: "Warn", what: "a policy with `dryRun: true`" },
    says: "spot is paused or a dry run",
    ...specified({ dryRun: true }, { dryRun: null }),
  },
  {
    ...{
      check: "forecast",
      status: "Fail",
      what: "a window that opens after every node's deadline",
    },
    says: "spot: ",
    ...specified({ windows: [{ cron: "0 3 29 2 *", duration: "1m" }] }, { windows: null }),
  },
  {
    ...{ check: "windows", status: "Warn", what: "windows that open for 20 minutes a day" },
    says: "spot: a node launched while the windows are open leaves again",
    // Until the controller has seen the change.
    also: ["forecast"],
    ...specified(
      { windows: [{ timeZone: "UTC", start: "02:00", end: "02:20" }] },
      { windows: null },
    ),
  },
  {
    ...{ check: "actions", status: "Fail", what: "an action whose host is not allowed" },
    says: "spot: spec.actions[0].slack.url: found the host hooks.slack.com:443",
    ...specified(
      {
        actions: [
          { name: "tell", at: "AtEnd", slack: { url: "https://hooks.slack.com/services/T0/B0" } },
        ],
      },
      { actions: null },
    ),
  },
  {
    ...{
      check: "alerts",
      status: "Fail",
      what: "an Alertmanager that --action-hosts does not name",
    },
    says: "found the host alertmanager.monitoring:9093, which --action-hosts does not allow",
    make: gatedBy(() => "http://alertmanager.monitoring:9093"),
    mend: patched(`${policies}/spot`, { spec: { gates: null } }),
  },
  {
    ...{ check: "alerts", status: "Fail", what: "an Alertmanager that does not respond" },
    says: "the gate of spot has no response",
    make: gatedBy(({ nowhere }) => nowhere),
    mend: patched(`${policies}/spot`, { spec: { gates: null } }),
  },
  {
    ...{ check: "alerts", status: "Warn", what: "a firing alert that the gate matches" },
    says: "alerts hold planned departures of spot (Down)",
    make: gatedBy(({ alertmanager }) => alertmanager.url),
    mend: patched(`${policies}/spot`, { spec: { gates: null } }),
  },
];

/** Faults of nodes, of what runs on them, and of other tools for nodes. */
const nodeFaults: readonly Fault[] = [
  {
    ...{
      check: "agents",
      status: "Fail",
      what: "Spot nodes without an agent for over five minutes",
    },
    says: "9 Spot nodes without a Ready agent",
    // The API server's clock is set ahead so that nodes get that old.
    also: ["clock", "lease"],
    asked: () => serverTime(6 * 60),
    ...changed(agent, selectingNodes({ no: "such" }), selectingNodes({ no: null })),
  },
  ...[
    "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.5",
    "estafette/estafette-gke-preemptible-killer:1.3.1",
    "gcr.io/x/k8s-node-termination-handler:1",
    "kube-aws/kube-spot-termination-notice-handler:1.13.7-1",
    "planetlabs/draino:e0d5277",
  ].map(
    (image): Fault => ({
      ...{ check: "other-tools", status: "Warn", what: `a Deployment of \`${image}\`` },
      says: "drains or ends the same nodes",
      ...created(deployments, idleDeployment("rival", image)),
    }),
  ),
  {
    ...{ check: "other-marks", status: "Warn", what: "an annotation of estafette's killer" },
    says: "spot-1 (estafette)",
    ...annotated(
      "/api/v1/nodes/spot-1",
      "estafette.io/gke-preemptible-killer-state",
      "2026-01-01T00:00:00Z",
    ),
  },
  {
    ...{ check: "other-marks", status: "Warn", what: "a taint of cluster-autoscaler" },
    says: "spot-1 (cluster-autoscaler)",
    ...tainted("spot-1", "ToBeDeletedByClusterAutoscaler"),
  },
  {
    ...{ check: "budgets", status: "Fail", what: "a budget with `maxUnavailable: 0`" },
    says: "default/never",
    // The audit reports it, too.
    also: ["grace"],
    ...created("/apis/policy/v1/namespaces/default/poddisruptionbudgets", {
      ...{ apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata: { name: "never" } },
      spec: { maxUnavailable: 0, selector: { matchLabels: { app: "web" } } },
    }),
  },
  {
    ...{ check: "left-pods", status: "Warn", what: "a leftover pod of a machine that is gone" },
    says: "1 pod left from machines that ended: default/left",
    ...created("/api/v1/namespaces/default/pods", idlePod("left"), {
      ...{ phase: "Failed", reason: "Terminated" },
    }),
  },
  {
    ...{ check: "local-volumes", status: "Warn", what: "a claim whose volume is on a node's disk" },
    says: "default/data-es-0 on spot-1",
    ...created("/api/v1/persistentvolumes", {
      ...{ apiVersion: "v1", kind: "PersistentVolume", metadata: { name: "pv-es-0" } },
      spec: {
        ...{ capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"] },
        ...{ hostPath: { path: "/opt/pv-es-0" }, storageClassName: "local-path" },
        claimRef: { namespace: "default", name: "data-es-0" },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: "kubernetes.io/hostname", operator: "In", values: ["spot-1"] },
                ],
              },
            ],
          },
        },
      },
    }),
  },
  {
    ...{ check: "grace", status: "Warn", what: "a Deployment with a grace period of 120 s on GKE" },
    says: "grace-cut of Deployment default/slow",
    ...created(deployments, idleDeployment("slow", "slow", 120)),
  },
  {
    ...{ check: "provider-id", status: "Fail", what: "a Spot node of an unknown cloud" },
    says: "the machine of metal is not known",
    ...created("/api/v1/nodes", { ...nodeObject({ name: "metal", providerID: "metal://rack/7" }) }),
  },
];

/** Faults of policies and nodes while a controller leads. */
export const fleetFaults: readonly Fault[] = [...policyFaults, ...nodeFaults];

/** Faults once no controller leads, because a leader would repair some of them. */
export const leaderlessFaults: readonly Fault[] = [
  {
    ...{ check: "lease", status: "Fail", what: "a stopped controller" },
    says: "nobody leads: the Lease was released",
    make: ({ controller: running }) => running.stop(),
  },
  {
    ...{ check: "marks", status: "Warn", what: "Lastcall's taint on a node without a departure" },
    says: "marked without a departure: standard-1",
    ...tainted("standard-1", "lastcall.dev/departing"),
  },
  {
    ...{ check: "departures", status: "Warn", what: "a departure that was due two hours ago" },
    says: "1 departure due for over an hour, the first of spot-2",
    make: (stage) => depart(stage, "stuck"),
    mend: (stage) => send(stage, { method: "DELETE", path: `${departures}/stuck` }),
  },
  {
    ...{ check: "departures", status: "Warn", what: "a departure that failed within the last day" },
    says: "1 departure failed within a day",
    make: async (stage) => {
      await depart(stage, "lost");
      const status = { phase: "Ended", outcome: "Failed", endedAt: formatInstant(ago(hours(1))) };
      await patched(`${departures}/lost/status`, { status })(stage);
    },
    mend: (stage) => send(stage, { method: "DELETE", path: `${departures}/lost` }),
  },
  {
    ...{ check: "agents", status: "Warn", what: "no agent installed" },
    says: "no agent is installed",
    // Its account keeps its permissions, and nothing uses it.
    also: ["drainers"],
    ...removed(agent),
  },
  {
    ...{ check: "crds", status: "Fail", what: "a deleted resource definition" },
    says: "departures.lastcall.dev is not installed",
    ...removed(`${definitions}/departures.lastcall.dev`),
  },
  {
    ...{ check: "forecast", status: "Warn", what: "a change that no controller has seen" },
    says: "has not seen the last change of spot",
    make: patched(`${policies}/spot`, { spec: { lifetime: { max: "23h" } } }),
  },
];

/** The last of all: afterwards nothing is left to check. */
export const emptyFaults: readonly Fault[] = [
  {
    ...{ check: "spot-nodes", status: "Warn", what: "no Spot node in the cluster" },
    says: "no node is labelled as Spot",
    also: ["policy-match"],
    make: (stage) => {
      const path = "/api/v1/nodes?labelSelector=cloud.google.com%2Fgke-provisioning%21%3Dstandard";
      return send(stage, { method: "DELETE", path });
    },
  },
];

function gatedBy(urlOf: (stage: Stage) => string) {
  return (stage: Stage) =>
    patched(`${policies}/spot`, { spec: { gates: { alerts: { url: urlOf(stage) } } } })(stage);
}

function depart({ world }: Stage, name: string) {
  const departAt = formatInstant(ago(hours(2)));
  return makeDeparture(world.plane, "spot-2", {
    name,
    spec: () => ({ cause: "Manual", departAt }),
  });
}

function policy(name: string, spec: object): Body {
  return {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata: { name } },
    spec: { nodeSelector: ofGeneration("1"), ...spec },
  };
}

function ofGeneration(generation: string): object {
  const expression = { key: generationLabel, operator: "In", values: [generation] };
  return { nodeSelectorTerms: [{ matchExpressions: [expression] }] };
}

function selectingNodes(nodeSelector: object): object {
  return { spec: { template: { spec: { nodeSelector } } } };
}

function idleDeployment(name: string, image: string, terminationGracePeriodSeconds = 30): Body {
  const labels = { app: name };
  return {
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata: { name } },
    spec: {
      ...{ replicas: 0, selector: { matchLabels: labels } },
      template: {
        metadata: { labels },
        spec: { terminationGracePeriodSeconds, containers: [{ name, image }] },
      },
    },
  };
}
