import type { KubeWatchEvent } from "../../contracts/kube-api.ts";
import { type Fields, fieldsOf, isFields } from "../../core/json/json-field.ts";
import { type Instant, type Millis, millis, parseInstant } from "../../core/time/time.ts";
import type { ResourceColumn, ResourceType } from "../api/resource-registry.ts";
import type { ModelObject } from "../api/store/object-store.ts";

type ColumnCell = (object: ModelObject, nowAt: Instant) => unknown;
type ShownColumn = readonly [name: string, cell: ColumnCell, width?: "wide"];

/** The time since an instant; `<unknown>` if there is none. */
function ageOf(text: unknown, nowAt: Instant): string {
  const at = typeof text === "string" ? parseInstant(text) : undefined;
  return at === undefined ? "<unknown>" : humanDuration(millis(nowAt - at));
}

function ageCell(object: ModelObject, nowAt: Instant): string {
  return ageOf(object.metadata.creationTimestamp, nowAt);
}

const name: ShownColumn = ["Name", (object) => object.metadata.name];
const age: ShownColumn = ["Age", ageCell];
const templateColumns: readonly ShownColumn[] = [
  ["Containers", (object) => ofContainers(object, "name"), "wide"],
  ["Images", (object) => ofContainers(object, "image"), "wide"],
  ["Selector", selectorText, "wide"],
];

/** By storage. Source: kubernetes `pkg/printers/internalversion/printers.go`. */
const builtInColumns: Readonly<Record<string, readonly ShownColumn[]>> = {
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
  const containers: readonly Fields[] = Array.isArray(list) ? list.map(fieldsOf) : [];
  return containers.map((container) => container[field]).join(",");
}

function selectorText(object: ModelObject): string {
  const labels = Object.entries(fieldsOf(readJsonPath(object, ".spec.selector.matchLabels")));
  return labels.map(([label, value]) => `${label}=${value}`).join(",") || "<none>";
}

function nodeStatus(node: ModelObject): string {
  const ready = readJsonPath(node, '.status.conditions[?(@.type=="Ready")].status');
  const texts: Readonly<Record<string, string>> = { True: "Ready", False: "NotReady" };
  const text = texts[String(ready)] ?? "Unknown";
  return fieldsOf(node.spec).unschedulable ? `${text},SchedulingDisabled` : text;
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
  return Object.keys(fieldsOf(object.data)).length;
}

function lastSeen(event: ModelObject, nowAt: Instant): string {
  const series = fieldsOf(event.series).lastObservedTime;
  return ageOf(series ?? event.lastTimestamp ?? event.eventTime, nowAt);
}

function involvedObject(event: ModelObject): string {
  const { kind, name: named } = fieldsOf(event.involvedObject);
  return `${String(kind ?? "").toLowerCase()}/${named ?? ""}`;
}

/** `1/2`: the number of ready containers. */
function podReady(pod: ModelObject): string {
  const wanted = readJsonPath(pod, ".spec.containers");
  const statuses = readJsonPath(pod, ".status.containerStatuses");
  const isRunning = fieldsOf(pod.status).phase === "Running";
  const ready = Array.isArray(statuses)
    ? statuses.filter((one) => isRunning && fieldsOf(one).ready === true).length
    : 0;
  return `${ready}/${Array.isArray(wanted) ? wanted.length : 0}`;
}

/** The status that kubectl shows: Terminating and reasons take precedence over the phase. */
function podStatus(pod: ModelObject): string {
  const { phase, reason } = fieldsOf(pod.status);
  if (pod.metadata.deletionTimestamp !== undefined) return "Terminating";
  if (typeof reason === "string" && reason !== "") return reason;
  if (phase === "Succeeded") return "Completed";
  if (phase === "Failed") return "Error";
  const isPlaced = Boolean(fieldsOf(pod.spec).nodeName);
  return phase === "Pending" && isPlaced ? "ContainerCreating" : String(phase ?? "Unknown");
}

/**
 * An age as kubectl shows it: `45s`, `5m30s`, `3h`, `2d4h`. Source: apimachinery
 * `pkg/util/duration`.
 */
export function humanDuration(span: Millis): string {
  const seconds = Math.floor(span / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 120) return `${Math.max(0, seconds)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return withRest(`${minutes}m`, seconds % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return withRest(`${hours}h`, minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (days < 8) return withRest(`${days}d`, hours % 24, "h");
  if (days < 730) return `${days}d`;
  const years = Math.floor(days / 365);
  return years < 8 ? withRest(`${years}y`, days % 365, "d") : `${years}y`;
}

function withRest(text: string, rest: number, unit: string): string {
  return rest === 0 ? text : `${text}${rest}${unit}`;
}

const step =
  /\.((?:[^.[\\]|\\.)+)|\[(\d+)\]|\[\?\(@\.([\w.]+)\s*==\s*["']([^"']*)["']\)\]|\[["']([^"']+)["']\]/g;

/**
 * Reads the value of a printer column's `jsonPath`, such as `.status.phase`,
 * `.metadata.labels.example\.com/a` or `.status.conditions[?(@.type=="Ready")].status`; undefined
 * if there is none. Only these forms are supported.
 */
export function readJsonPath(object: unknown, path: string): unknown {
  let value: unknown = object;
  for (const [, name, index, field, wanted, quoted] of path.matchAll(step)) {
    if (index !== undefined) value = Array.isArray(value) ? value[Number(index)] : undefined;
    else if (field !== undefined) value = firstWith(value, { field, wanted: wanted ?? "" });
    else value = fieldsOf(value)[(quoted ?? name ?? "").replaceAll("\\", "")];
  }
  return value;
}

function firstWith(list: unknown, match: { field: string; wanted: string }): unknown {
  if (!Array.isArray(list)) return undefined;
  return list.find((item) => isFields(item) && String(item[match.field]) === match.wanted);
}

/** Whether a client requests a Table; kubectl does when it prints columns. */
export function wantsTable(accept: string | undefined): boolean {
  return /as=Table;(.*;)?g=meta\.k8s\.io/.test(accept ?? "");
}

/** A list or a single object as the Table that the server would send. */
export function tableOf(
  body: unknown,
  options: { readonly type: ResourceType; readonly nowAt: Instant },
): object {
  const record = fieldsOf(body);
  const items = Array.isArray(record.items) ? record.items : [body];
  const metadata = Array.isArray(record.items)
    ? record.metadata
    : { resourceVersion: fieldsOf(record.metadata).resourceVersion };
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: definitionsOf(options.type),
    rows: items.map((item) => rowOf(item as ModelObject, options)),
  };
}

/** A watch event as a Table of one row; errors are passed on unchanged. */
export function tableEvent(
  event: KubeWatchEvent,
  options: { readonly type: ResourceType; readonly nowAt: Instant },
): { readonly type: string; readonly object: object } {
  if (event.type === "ERROR" || event.type === "BOOKMARK") return event;
  return { type: event.type, object: tableOf(event.object, options) };
}

function definitionsOf(type: ResourceType): readonly object[] {
  return columnsOf(type).map((column) => ({
    name: column.name,

    type: column.type,
    format: column.name === "Name" ? "name" : "",
    description: "",
    priority: column.priority,
  }));
}

function rowOf(
  object: ModelObject,
  options: { readonly type: ResourceType; readonly nowAt: Instant },
): object {
  const { metadata } = object;
  return {
    cells: columnsOf(options.type).map((column) => column.cell(object, options.nowAt)),
    object: { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata },
  };
}

/** A column of `kubectl get`; those of priority 1 are for `-o wide`. */
interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly priority: number;
  readonly cell: ColumnCell;
}

/** The columns of a kind: its own, those of its definition, or name and age. */
function columnsOf(type: ResourceType): readonly TableColumn[] {
  if (type.custom) return customColumns(type.custom.printerColumns);
  const own = builtInColumns[type.storage];
  if (own === undefined) return [nameColumn, ageColumn];
  return own.map(([name, cell, width]) => ({
    name,
    type: "string",
    priority: width === "wide" ? 1 : 0,
    cell,
  }));
}

const nameColumn: TableColumn = {
  name: "Name",
  type: "string",
  priority: 0,
  cell: (object) => object.metadata.name,
};
const ageColumn: TableColumn = { name: "Age", type: "string", priority: 0, cell: ageCell };

function customColumns(given: readonly ResourceColumn[]): readonly TableColumn[] {
  if (given.length === 0) return [nameColumn, ageColumn];
  return [nameColumn, ...given.map(customColumn)];
}

/** Dates are sent as ages, by the server's clock. */
function customColumn(given: ResourceColumn): TableColumn {
  const { name, type, priority = 0, jsonPath } = given;
  const cell = (object: ModelObject, nowAt: Instant): unknown => {
    const value = readJsonPath(object, jsonPath);
    if (value === undefined) return null;
    return type === "date" ? ageOf(value, nowAt) : value;
  };
  return { name, type: type === "date" ? "string" : type, priority, cell };
}
