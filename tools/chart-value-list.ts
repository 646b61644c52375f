/**
 * The chart's values. `values.yaml`, `values.schema.json`, the chart's README and the table in the
 * docs are generated from this list. Defaults that are in a manifest are read from it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { JsonSchema } from "../src/config/schema/crd.ts";
import { killerValues } from "./chart-killer-values.ts";
import {
  affinity,
  annotations,
  type ChartValue,
  labels,
  optionsSchema,
  policiesSchema,
  resources,
  tag,
  tolerations,
  updateStrategy,
} from "./chart-schema.ts";
import { root } from "./source-tree.ts";

export interface ChartValueGroup {
  readonly title: string;
  readonly values: readonly ChartValue[];
}

const text: JsonSchema = { type: "string" };
const flag: JsonSchema = { type: "boolean" };
const anyMap: JsonSchema = { type: "object" };
const objects: JsonSchema = { type: "array", items: { type: "object" } };
/** A valid name of a Kubernetes object. */
const name: JsonSchema = {
  ...{ type: ["string", "null"], maxLength: 253 },
  pattern: "^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$",
};
/** A name that is extended to form other names. */
const shortName: JsonSchema = {
  ...{ type: "string", maxLength: 40 },
  pattern: "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$",
};
const repository: JsonSchema = {
  ...{ type: "string", minLength: 1, pattern: "^[a-z0-9][-._a-z0-9:/]*$" },
};
const digest: JsonSchema = { type: "string", pattern: "^(sha256:[0-9a-f]{64})?$" };
const pullPolicy: JsonSchema = { enum: ["Always", "IfNotPresent", "Never"] };
const variable: JsonSchema = {
  type: "object",
  required: ["name"],
  additionalProperties: false,
  properties: {
    name: { type: "string", pattern: "^[-._A-Za-z][-._A-Za-z0-9]*$" },
    value: { type: "string" },
    valueFrom: { type: "object" },
  },
};
const pullSecrets: JsonSchema = {
  type: "array",
  items: { type: "object", required: ["name"], properties: { name: { type: "string" } } },
};
const span: JsonSchema = { type: "string", pattern: "^[0-9]+(ms|s|m|h)$" };

/** The images exist for Linux only. */
const linuxLabels: JsonSchema = {
  ...labels,
  properties: { "kubernetes.io/os": { const: "linux" } },
};

interface Container {
  readonly resources: unknown;
  readonly securityContext: unknown;
}

interface PodSpec {
  readonly securityContext: unknown;
  readonly tolerations?: unknown;
  readonly containers: readonly [Container];
}

/** The pod of a manifest's first object. */
function podOf(path: string): PodSpec {
  const [first] = parseAllDocuments(readFileSync(join(root, "deploy", path), "utf8"));
  return first?.toJS().spec.template.spec;
}

const controllerPod = podOf("base/controller.yaml");
const agentPod = podOf("agent/daemonset.yaml");

/** The pod values of one part. The controller's are at the top level, as in the killer's chart. */
function podValues(of: "the controller" | "the agents"): readonly ChartValue[] {
  const isAgent = of === "the agents";
  const prefix = isAgent ? "agent." : "";
  const pod = isAgent ? agentPod : controllerPod;
  const at = (path: string) => `${prefix}${path}`;
  const affinityHelp = isAgent
    ? "Extends the node affinity that restricts the agents to Spot nodes."
    : "Extends the affinity by which the controller prefers nodes that are not Spot, and spreads its replicas.";
  const container = pod.containers[0];
  return [
    {
      ...{ path: at("nodeSelector"), schema: linuxLabels, default: {} },
      about: isAgent
        ? "Labels of the nodes that the agents run on, in addition to those of Spot nodes and `kubernetes.io/os: linux`."
        : "Labels of the nodes that the controller runs on, besides `kubernetes.io/os: linux`. A label of Spot nodes removes the preference for others.",
    },
    {
      ...{ path: at("tolerations"), schema: tolerations, default: pod.tolerations ?? [] },
      about: `Tolerations of ${of}.`,
    },
    {
      ...{ path: at("affinity"), schema: affinity, default: {} },
      about: `${affinityHelp} Preferences (\`nodeAffinity.preferred…\`) are added to the chart's; a requirement (\`nodeAffinity.required…\`) replaces the chart's; an empty one of either removes it.`,
    },
    {
      ...{ path: at("resources"), schema: resources, default: container.resources },
      about: `Resource requests and limits of ${of}.`,
    },
    {
      ...{ path: at("podLabels"), schema: labels, default: {} },
      about: `Additional labels for the pods of ${of}, such as \`azure.workload.identity/use: "true"\`.`,
    },
    {
      ...{ path: at("podAnnotations"), schema: annotations, default: {} },
      about: `Additional annotations for the pods of ${of}.`,
    },
    {
      ...{ path: at("podSecurityContext"), schema: anyMap, default: pod.securityContext },
      about: `The security context of the pods of ${of}.`,
    },
    {
      ...{ path: at("securityContext"), schema: anyMap, default: container.securityContext },
      about: `The security context of the container of ${of}.`,
    },
    {
      path: at("extraEnv"),
      schema: {
        anyOf: [
          { type: "array", items: variable },
          { type: "object", additionalProperties: { type: ["string", "number", "boolean"] } },
        ],
      },
      default: null,
      about: `Additional environment variables of ${of}: a list as in a pod, or a map of names to values.`,
    },
    {
      ...{ path: at("extraVolumes"), schema: objects, default: [] },
      about: `Additional volumes of the pods of ${of}.`,
    },
    {
      ...{ path: at("extraVolumeMounts"), schema: objects, default: [] },
      about: `Additional volume mounts of the container of ${of}.`,
    },
  ];
}

function accountValues(prefix: "" | "agent."): readonly ChartValue[] {
  const of = prefix === "" ? "the controller" : "the agents";
  return [
    {
      ...{ path: `${prefix}serviceAccount.create`, schema: flag, default: true },
      about: `Creates a ServiceAccount for ${of}.`,
    },
    {
      ...{ path: `${prefix}serviceAccount.name`, schema: name, default: "" },
      about:
        prefix === ""
          ? "The name of the ServiceAccount. Empty: the name of the controller's other objects, `lastcall`."
          : "The name of the ServiceAccount. Empty: the name of the agents' other objects, `lastcall-agent`.",
    },
    {
      ...{ path: `${prefix}serviceAccount.annotations`, schema: annotations, default: {} },
      about:
        prefix === ""
          ? "Annotations of the ServiceAccount, such as `iam.gke.io/gcp-service-account` or `eks.amazonaws.com/role-arn`."
          : "Annotations of the ServiceAccount. The agents need no cloud identity.",
    },
  ];
}

function imageValues(prefix: "" | "agent."): readonly ChartValue[] {
  const at = (path: string) => `${prefix}image.${path}`;
  const usual = prefix === "" ? "lastcall" : "lastcall-agent";
  const of = prefix === "" ? "controller" : "agents";
  return [
    {
      ...{ path: at("repository"), schema: repository, default: usual },
      about: `The image of the ${of}, built from a checkout as docs/images.md describes.`,
    },
    {
      ...{ path: at("tag"), schema: tag, default: "" },
      about: "The tag of the image. Empty: the chart's `appVersion`.",
    },
    {
      ...{ path: at("digest"), schema: digest, default: "" },
      about: "The digest of the image, `sha256:…`; it takes precedence over the tag.",
    },
    {
      ...{ path: at("pullPolicy"), schema: pullPolicy, default: "IfNotPresent" },
      about: "When the kubelet pulls the image.",
    },
  ];
}

function monitorValues(path: string, kind: string): readonly ChartValue[] {
  return [
    {
      ...{ path: `${path}.enabled`, schema: flag, default: false },
      about: `Creates a ${kind} of the Prometheus Operator for the controller and the agents.`,
    },
    {
      ...{ path: `${path}.labels`, schema: labels, default: {} },
      about: `Additional labels for the ${kind}, by which Prometheus selects it.`,
    },
    {
      ...{ path: `${path}.interval`, schema: span, default: "30s" },
      about: "How often Prometheus scrapes.",
    },
  ];
}

export const valueGroups: readonly ChartValueGroup[] = [
  {
    title: "Names and images",
    values: [
      {
        ...{ path: "nameOverride", schema: shortName, default: "" },
        about: "Replaces `lastcall` in names and in the label `app.kubernetes.io/name`.",
      },
      {
        ...{ path: "fullnameOverride", schema: shortName, default: "" },
        about:
          "Replaces `lastcall` in names only. Names do not contain the release's name: one release per cluster is enough, since only one of several controllers acts.",
      },
      ...imageValues(""),
      {
        ...{ path: "imagePullSecrets", schema: pullSecrets, default: [] },
        about: "Secrets for pulling both images.",
      },
      {
        ...{ path: "priorityClassName", schema: name, default: "" },
        about:
          "The priority class of all pods. Empty: system-cluster-critical for the controller and system-node-critical for the agents, with the ResourceQuotas that GKE requires for such pods outside of kube-system.",
      },
      {
        ...{ path: "rbac.enable", schema: flag, default: true },
        about: "Creates the roles and bindings. Lastcall needs the permissions that they grant.",
      },
    ],
  },
  {
    title: "Policies",
    values: [
      {
        ...{ path: "policies", schema: policiesSchema(), default: [] },
        about:
          "DeparturePolicies as a list of `{name, spec}`; docs/reference/departurepolicy.md describes the spec. Without a policy, Lastcall does nothing.",
      },
    ],
  },
  {
    title: "Controller",
    values: [
      {
        ...{ path: "controller.enabled", schema: flag, default: true },
        about: "Installs the controller.",
      },
      {
        ...{ path: "controller.replicas", schema: { type: "integer", minimum: 0 }, default: 2 },
        about:
          "The number of replicas. One leads, the others stand by; a handover takes less than a minute.",
      },
      {
        ...{ path: "controller.options", schema: optionsSchema("run"), default: {} },
        about:
          "Options of `lastcall run`, keyed by the name of the flag, such as `sqs-queue-url`; a repeatable option takes a list.",
      },
      {
        ...{ path: "controller.restartOwner", schema: flag, default: false },
        about:
          "Lets the controller restart Deployments and StatefulSets, for policies with `onSingleReplica: RestartOwner`, and change nothing else in them.",
      },
      {
        ...{ path: "controller.requireStableNodes", schema: flag, default: false },
        about:
          "Keeps the controller off Spot nodes even if the cluster has no others: its pods are then Pending. By default it only prefers other nodes.",
      },
      ...accountValues(""),
      ...podValues("the controller"),
    ],
  },
  {
    title: "Agents",
    values: [
      {
        ...{ path: "agent.enabled", schema: flag, default: true },
        about:
          "Installs the agents, one on each Spot node. `false` on GKE Autopilot, which rejects pods on the host network (docs/cloud/gcp.md).",
      },
      {
        ...{ path: "agent.options", schema: optionsSchema("agent"), default: {} },
        about:
          "Options of `lastcall agent`, keyed by the name of the flag. `fallback` also grants the permissions that it needs, and no others. The chart sets `node-name`.",
      },
      {
        path: "agent.updateStrategy",
        schema: updateStrategy,
        default: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } },
        about: "The update strategy of the DaemonSet.",
      },
      ...imageValues("agent."),
      ...accountValues("agent."),
      ...podValues("the agents"),
    ],
  },
  {
    title: "Monitoring",
    values: [
      ...monitorValues("metrics.serviceMonitor", "ServiceMonitor"),
      ...monitorValues("metrics.podMonitor", "PodMonitor"),
      {
        ...{ path: "metrics.prometheusRule.enabled", schema: flag, default: false },
        about: "Creates a PrometheusRule with the alerts of `deploy/prometheus`.",
      },
      {
        ...{ path: "metrics.prometheusRule.labels", schema: labels, default: {} },
        about: "Additional labels for the PrometheusRule.",
      },
      {
        ...{ path: "grafanaDashboard.enabled", schema: flag, default: false },
        about: "Creates a ConfigMap with a dashboard, for Grafana's sidecar to load.",
      },
      {
        path: "grafanaDashboard.labels",
        ...{ schema: labels, default: { grafana_dashboard: "1" } },
        about: "Labels of the ConfigMap, by which the sidecar finds it.",
      },
      {
        ...{ path: "grafanaDashboard.annotations", schema: annotations, default: {} },
        about: "Annotations of the ConfigMap, such as the dashboard folder.",
      },
    ],
  },
  {
    title: "Network and API server",
    values: [
      {
        ...{ path: "networkPolicy.enabled", schema: flag, default: false },
        about:
          "Creates NetworkPolicies for the controller and the agents, as strict as works on every cloud. Most network plugins do not apply them to the agents, which use the host network.",
      },
      {
        path: "networkPolicy.metricsFrom",
        ...{ schema: objects, default: [{ namespaceSelector: {} }] },
        about: "Who may scrape metrics, as peers of a NetworkPolicy.",
      },
      {
        ...{ path: "networkPolicy.egress", schema: objects, default: [] },
        about:
          "Additional destinations of the controller, besides the API server, the clouds and DNS, as egress rules of a NetworkPolicy.",
      },
      {
        ...{ path: "flowSchema.enabled", schema: flag, default: false },
        about:
          "Creates a FlowSchema, so that requests of the controller and the agents do not queue behind those of other pods.",
      },
      {
        ...{ path: "flowSchema.priorityLevel", schema: text, default: "workload-high" },
        about: "The PriorityLevelConfiguration of the FlowSchema.",
      },
      {
        path: "flowSchema.precedence",
        ...{ schema: { type: "integer", minimum: 1, maximum: 10000 }, default: 900 },
        about: "The matchingPrecedence of the FlowSchema; the lowest value is matched first.",
      },
    ],
  },
  { title: "Values of estafette's chart", values: killerValues },
];
