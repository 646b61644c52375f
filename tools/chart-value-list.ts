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
  not: { pattern: "estafette-gke-preemptible-killer" },
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
    ? "Added to the node affinity that keeps the agents on Spot nodes."
    : "Added to the affinity that keeps the controller off Spot nodes and its replicas apart.";
  const container = pod.containers[0];
  return [
    {
      ...{ path: at("nodeSelector"), schema: labels, default: {} },
      about: isAgent
        ? "Labels of the nodes that the agents run on, beside those of Spot nodes."
        : "Labels of the nodes that the controller runs on. One that asks for Spot nodes takes away the affinity against them.",
    },
    {
      ...{ path: at("tolerations"), schema: tolerations, default: pod.tolerations ?? [] },
      about: `Taints of nodes on which ${of} may run.`,
    },
    {
      ...{ path: at("affinity"), schema: affinity, default: {} },
      about: `${affinityHelp} A term of the same kind (\`nodeAffinity.required…\`) stands in its place, an empty one takes it away.`,
    },
    {
      ...{ path: at("resources"), schema: resources, default: container.resources },
      about: `Requests and limits of ${of}.`,
    },
    {
      ...{ path: at("podLabels"), schema: labels, default: {} },
      about: `More labels on the pods of ${of}, such as \`azure.workload.identity/use: "true"\`.`,
    },
    {
      ...{ path: at("podAnnotations"), schema: annotations, default: {} },
      about: `More annotations on the pods of ${of}.`,
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
      about: `More environment variables of ${of}: a list as in a pod, or a map of names and values.`,
    },
    {
      ...{ path: at("extraVolumes"), schema: objects, default: [] },
      about: `More volumes of the pods of ${of}.`,
    },
    {
      ...{ path: at("extraVolumeMounts"), schema: objects, default: [] },
      about: "Where they are mounted.",
    },
  ];
}

function accountValues(prefix: "" | "agent."): readonly ChartValue[] {
  const of = prefix === "" ? "the controller" : "the agents";
  return [
    {
      ...{ path: `${prefix}serviceAccount.create`, schema: flag, default: true },
      about: `Makes the ServiceAccount of ${of}.`,
    },
    {
      ...{ path: `${prefix}serviceAccount.name`, schema: name, default: "" },
      about:
        prefix === ""
          ? "Its name. Empty: that of the release's objects, `lastcall`."
          : "Its name. Empty: that of the release's objects with `-agent`, `lastcall-agent`.",
    },
    {
      ...{ path: `${prefix}serviceAccount.annotations`, schema: annotations, default: {} },
      about:
        prefix === ""
          ? "Its annotations, such as `iam.gke.io/gcp-service-account` or `eks.amazonaws.com/role-arn`."
          : "Its annotations. The agents need no identity at a cloud.",
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
      about: `The image of the ${of}, built from a checkout: docs/images.md.`,
    },
    {
      ...{ path: at("tag"), schema: tag, default: "" },
      about: "Its tag. Empty: the chart's `appVersion`.",
    },
    {
      ...{ path: at("digest"), schema: digest, default: "" },
      about: "Its digest, `sha256:…`, which beats the tag.",
    },
    {
      ...{ path: at("pullPolicy"), schema: pullPolicy, default: "IfNotPresent" },
      about: "When it is pulled.",
    },
  ];
}

function monitorValues(path: string, kind: string): readonly ChartValue[] {
  return [
    {
      ...{ path: `${path}.enabled`, schema: flag, default: false },
      about: `Makes a ${kind} of the Prometheus Operator for controller and agents.`,
    },
    {
      ...{ path: `${path}.labels`, schema: labels, default: {} },
      about: `More labels on the ${kind}, by which Prometheus selects it.`,
    },
    {
      ...{ path: `${path}.interval`, schema: span, default: "30s" },
      about: "How often it scrapes.",
    },
  ];
}

export const valueGroups: readonly ChartValueGroup[] = [
  {
    title: "Names and images",
    values: [
      {
        ...{ path: "nameOverride", schema: shortName, default: "" },
        about: "In place of `lastcall` in names and in the label `app.kubernetes.io/name`.",
      },
      {
        ...{ path: "fullnameOverride", schema: shortName, default: "" },
        about:
          "In place of `lastcall` in names. The release's name is in none: one release a cluster is enough, since of several controllers one acts.",
      },
      ...imageValues(""),
      {
        ...{ path: "imagePullSecrets", schema: pullSecrets, default: [] },
        about: "Secrets with which both images are pulled.",
      },
      {
        ...{ path: "priorityClassName", schema: name, default: "" },
        about:
          "The class of the pods of both. Empty: system-cluster-critical for the controller and system-node-critical for the agents, with the ResourceQuotas without which GKE refuses such pods outside of kube-system.",
      },
      {
        ...{ path: "rbac.enable", schema: flag, default: true },
        about: "Makes the roles and bindings. What they grant is needed.",
      },
    ],
  },
  {
    title: "Policies",
    values: [
      {
        ...{ path: "policies", schema: policiesSchema(), default: [] },
        about:
          "DeparturePolicies: `{name, spec}`, the spec as in docs/reference/departurepolicy.md. Without any, nothing is done.",
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
        about: "One leads, the others stand by; a handover takes less than a minute.",
      },
      {
        ...{ path: "controller.options", schema: optionsSchema("run"), default: {} },
        about:
          "Options of `lastcall run` by the flag's name, such as `sqs-queue-url`; one that may be repeated takes a list.",
      },
      {
        ...{ path: "controller.restartOwner", schema: flag, default: false },
        about:
          "Lets it restart Deployments and StatefulSets, for policies with `onSingleReplica: RestartOwner`, and change nothing else in them.",
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
        about: "Installs the agents, one on each Spot node.",
      },
      {
        ...{ path: "agent.options", schema: optionsSchema("agent"), default: {} },
        about:
          "Options of `lastcall agent` by the flag's name. `fallback` grants the rights that it needs, and no others. `node-name` is given by the chart.",
      },
      {
        path: "agent.updateStrategy",
        schema: updateStrategy,
        default: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: "10%" } },
        about: "How the DaemonSet is updated.",
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
        about: "Makes a PrometheusRule with the alerts of `deploy/prometheus`.",
      },
      {
        ...{ path: "metrics.prometheusRule.labels", schema: labels, default: {} },
        about: "More labels on the PrometheusRule.",
      },
      {
        ...{ path: "grafanaDashboard.enabled", schema: flag, default: false },
        about: "Makes a ConfigMap with a dashboard, as Grafana's sidecar collects it.",
      },
      {
        path: "grafanaDashboard.labels",
        ...{ schema: labels, default: { grafana_dashboard: "1" } },
        about: "Its labels, by which the sidecar finds it.",
      },
      {
        ...{ path: "grafanaDashboard.annotations", schema: annotations, default: {} },
        about: "Its annotations, such as the folder.",
      },
    ],
  },
  {
    title: "Network and API server",
    values: [
      {
        ...{ path: "networkPolicy.enabled", schema: flag, default: false },
        about:
          "NetworkPolicies for both, as narrow as works on every cloud. Most network plugins apply none to the agents, which are on their nodes' network.",
      },
      {
        path: "networkPolicy.metricsFrom",
        ...{ schema: objects, default: [{ namespaceSelector: {} }] },
        about: "Who may scrape, as peers of a NetworkPolicy.",
      },
      {
        ...{ path: "networkPolicy.egress", schema: objects, default: [] },
        about:
          "Where the controller may go beside the API server, the clouds and DNS, as rules of a NetworkPolicy.",
      },
      {
        ...{ path: "flowSchema.enabled", schema: flag, default: false },
        about: "A FlowSchema, so that requests of both are not queued behind those of other pods.",
      },
      {
        ...{ path: "flowSchema.priorityLevel", schema: text, default: "workload-high" },
        about: "Its PriorityLevelConfiguration.",
      },
      {
        path: "flowSchema.precedence",
        ...{ schema: { type: "integer", minimum: 1, maximum: 10000 }, default: 900 },
        about: "Its matchingPrecedence; the lower comes first.",
      },
    ],
  },
  { title: "Names of estafette's chart", values: killerValues },
];
