import { type Instant, millis, parseInstant } from "../../core/time/time.ts";
import { type JsonRecord, recordOf } from "../api/frozen-copy.ts";
import type { ModelObject } from "../api/model-object.ts";
import { humanDuration } from "./human-duration.ts";
import { readJsonPath } from "./json-path.ts";
import { podReady, podStatus } from "./pod-cells.ts";

export type ColumnCell = (object: ModelObject, nowAt: Instant) => unknown;
type Column = readonly [name: string, cell: ColumnCell, width?: "wide"];

/** How long ago an instant was; `<unknown>` where there is none. */
export function ageOf(text: unknown, nowAt: Instant): string {
  const at = typeof text === "string" ? parseInstant(text) : undefined;
  return at === undefined ? "<unknown>" : humanDuration(millis(nowAt - at));
}

export function ageCell(object: ModelObject, nowAt: Instant): string {
  return ageOf(object.metadata.creationTimestamp, nowAt);
}

const name: Column = ["Name", (object) => object.metadata.name];
const age: Column = ["Age", ageCell];
const templateColumns: readonly Column[] = [
  ["Containers", (object) => ofContainers(object, "name"), "wide"],
  ["Images", (object) => ofContainers(object, "image"), "wide"],
  ["Selector", selectorText, "wide"],
];

/** By storage. Source: kubernetes `pkg/printers/internalversion/printers.go`. */
export const builtInColumns: Readonly<Record<string, readonly Column[]>> = {
  nodes: [
    name,
    ["Status", nodeStatus],
    ["Roles", nodeRoles],
    age,
    ["Version", at(".status.nodeInfo.kubeletVersion", "")],
    ["Internal-IP", at('.status.addresses[?(@.type=="InternalIP")].address'), "wide"],
    ["External-IP", at('.status.addresses[?(@.type=="ExternalIP")].address'), "wide"],
    ["OS-Image", at(".status.nodeInfo.osImage"), "wide"],
    ["Kernel-Version", at(".status.nodeInfo.kernelVersion"), "wide"],
    ["Container-Runtime", at(".status.nodeInfo.containerRuntimeVersion"), "wide"],
  ],
  pods: [
    name,
    ["Ready", podReady],
    ["Status", podStatus],
    ["Restarts", () => "0"],
    age,
    ["IP", at(".status.podIP"), "wide"],
    ["Node", at(".spec.nodeName"), "wide"],
    ["Nominated Node", at(".status.nominatedNodeName"), "wide"],
    ["Readiness Gates", () => "<none>", "wide"],
  ],
  namespaces: [name, ["Status", at(".status.phase")], age],
  events: [
    ["Last Seen", lastSeen],
    ["Type", at(".type", "")],
    ["Reason", at(".reason", "")],
    ["Object", involvedObject],
    ["Message", at(".message", "")],
  ],
  services: [
    name,
    ["Type", at(".spec.type", "ClusterIP")],
    ["Cluster-IP", at(".spec.clusterIP")],
    ["External-IP", () => "<none>"],
    ["Port(s)", () => "<none>"],
    age,
  ],
  configmaps: [name, ["Data", dataCount], age],
  secrets: [name, ["Type", at(".type", "Opaque")], ["Data", dataCount], age],
  serviceaccounts: [name, ["Secrets", () => 0], age],
  "deployments.apps": [
    name,
    ["Ready", readyOfWanted],
    ["Up-to-date", countAt(".status.updatedReplicas")],
    ["Available", countAt(".status.availableReplicas")],
    age,
    ...templateColumns,
  ],
  "replicasets.apps": [
    name,
    ["Desired", countAt(".spec.replicas")],
    ["Current", countAt(".status.replicas")],
    ["Ready", countAt(".status.readyReplicas")],
    age,
    ...templateColumns,
  ],
  "statefulsets.apps": [name, ["Ready", readyOfWanted], age, ...templateColumns.slice(0, 2)],
  "daemonsets.apps": [
    name,
    ["Desired", countAt(".status.desiredNumberScheduled")],
    ["Current", countAt(".status.currentNumberScheduled")],
    ["Ready", countAt(".status.numberReady")],
    ["Up-to-date", countAt(".status.updatedNumberScheduled")],
    ["Available", countAt(".status.numberAvailable")],
    ["Node Selector", () => "<none>"],
    age,
    ...templateColumns,
  ],
  "jobs.batch": [name, ["Status", jobStatus], ["Completions", jobCompletions], age],
  "poddisruptionbudgets.policy": [
    name,
    ["Min Available", at(".spec.minAvailable", "N/A")],
    ["Max Unavailable", at(".spec.maxUnavailable", "N/A")],
    ["Allowed Disruptions", countAt(".status.disruptionsAllowed")],
    age,
  ],
  "leases.coordination.k8s.io": [name, ["Holder", at(".spec.holderIdentity", "")], age],
  "priorityclasses.scheduling.k8s.io": [
    name,
    ["Value", at(".value")],
    ["Global-Default", at(".globalDefault", false)],
    age,
    ["PreemptionPolicy", at(".preemptionPolicy", "")],
  ],
  "customresourcedefinitions.apiextensions.k8s.io": [
    name,
    ["Created At", at(".metadata.creationTimestamp")],
  ],
};

function at(jsonPath: string, otherwise: unknown = "<none>"): ColumnCell {
  return (object) => readJsonPath(object, jsonPath) ?? otherwise;
}

function countAt(jsonPath: string): (object: ModelObject) => number {
  return (object) => Number(readJsonPath(object, jsonPath) ?? 0);
}

function ofContainers(object: ModelObject, field: string): string {
  const list = readJsonPath(object, ".spec.template.spec.containers");
  const containers: readonly JsonRecord[] = Array.isArray(list) ? list.map(recordOf) : [];
  return containers.map((container) => container[field]).join(",");
}

function selectorText(object: ModelObject): string {
  const labels = Object.entries(recordOf(readJsonPath(object, ".spec.selector.matchLabels")));
  return labels.map(([label, value]) => `${label}=${value}`).join(",") || "<none>";
}

function nodeStatus(node: ModelObject): string {
  const ready = readJsonPath(node, '.status.conditions[?(@.type=="Ready")].status');
  const texts: Readonly<Record<string, string>> = { True: "Ready", False: "NotReady" };
  const text = texts[String(ready)] ?? "Unknown";
  return recordOf(node.spec).unschedulable ? `${text},SchedulingDisabled` : text;
}

function nodeRoles(node: ModelObject): string {
  const prefix = "node-role.kubernetes.io/";
  const roles = Object.keys(node.metadata.labels ?? {}).filter((one) => one.startsWith(prefix));
  const names = roles.map((one) => one.slice(prefix.length)).toSorted();
  return names.join(",") || "<none>";
}

function readyOfWanted(object: ModelObject): string {
  return `${countAt(".status.readyReplicas")(object)}/${countAt(".spec.replicas")(object)}`;
}

function jobStatus(job: ModelObject): string {
  return countAt(".status.succeeded")(job) > 0 ? "Complete" : "Running";
}

function jobCompletions(job: ModelObject): string {
  return `${countAt(".status.succeeded")(job)}/${countAt(".spec.completions")(job)}`;
}

function dataCount(object: ModelObject): number {
  return Object.keys(recordOf(object.data)).length;
}

function lastSeen(event: ModelObject, nowAt: Instant): string {
  const series = recordOf(event.series).lastObservedTime;
  return ageOf(series ?? event.lastTimestamp ?? event.eventTime, nowAt);
}

function involvedObject(event: ModelObject): string {
  const { kind, name: named } = recordOf(event.involvedObject);
  return `${String(kind ?? "").toLowerCase()}/${named ?? ""}`;
}
