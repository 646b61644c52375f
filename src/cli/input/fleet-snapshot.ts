import { readClusterPolicy } from "../../config/policy/parse-policy-object.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import type { BudgetFacts, PodFacts } from "../../core/cluster/pod.ts";
import type { Departure } from "../../core/departure/departure.ts";
import { fieldsOf, listOf, nameOf, textOf, valueAt } from "../../core/json/json-field.ts";
import { cronProblem } from "../../core/limits/windows.ts";
import type { OperationStanding } from "../../core/plan/headline.ts";
import type { BadPolicy, Policy } from "../../core/policy/policy.ts";
import { isReleaseReason, type ReleaseStanding } from "../../core/policy/release-answer.ts";
import { type Instant, later, parseInstant } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import { ClusterClock, connect } from "../cluster/connect.ts";
import { readOperation } from "../cluster/operation-watch.ts";
import type { CommandIo } from "../command-line/command.ts";
import {
  checkObject,
  nodeFiles,
  type ReadObject,
  readObjects,
  readPolicyFiles,
} from "./read-objects.ts";

/** The input of a command's decisions, read once, from files or from the cluster. */
export interface FleetSnapshot {
  /** When the fleet was read, by the cluster's clock; see `ClusterClock`. */
  readonly readAt: Instant;
  /** For files: the latest kubelet report in them; undefined if there is none. */
  readonly recordedAt?: Instant | undefined;
  /** Whether anybody acts on the plan; undefined from files, or if nobody asked. */
  readonly operation?: OperationStanding | undefined;
  readonly nodes: readonly NodeFacts[];
  readonly pods: readonly PodFacts[];
  readonly budgets: readonly BudgetFacts[];
  readonly policies: readonly Policy[];
  readonly badPolicies: readonly BadPolicy[];
  /** Remarks on the policies, one sentence each. */
  readonly policyRemarks: readonly string[];
  /** What keeps a policy's departures from starting, as the controller reported it. */
  readonly unreleasable: ReadonlyMap<string, ReleaseStanding>;
  readonly departures: readonly Departure[];
  /** Namespaces that are terminating, if known: the API evicts no pod in them. */
  readonly terminatingNamespaces: ReadonlySet<string>;
  /** As `namespace/name`; undefined if they were not read. */
  readonly daemonSets: ReadonlySet<string> | undefined;
  /** Resources that a command can do without, and that the caller may not list. */
  readonly unlisted?: readonly string[] | undefined;
  /** The specs of PersistentVolumes in files, by the namespace and the name of their claim. */
  readonly volumes: ReadonlyMap<string, ReadonlyMap<string, unknown>>;
}

export interface SnapshotSource {
  readonly from: readonly string[];
  /** Policy files; without any, the policies of the snapshot itself are used. */
  readonly filename: readonly string[];
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly namespace?: string | undefined;
}

export type FleetKind = "Node" | "Departure" | "DeparturePolicy";

export interface NamedObjects {
  readonly kind: FleetKind;
  readonly names: readonly string[];
}

/** What a command needs besides nodes, policies and departures. */
export interface SnapshotNeeds {
  /** Only the pods of this node. Default: no pods and no budgets. */
  readonly podsOfNode?: string | undefined;
  /** Whether to read who leads and whether the agents are ready. */
  readonly operation?: boolean | undefined;
  /** Kinds that the command can do without. Default: none. */
  readonly optional?: readonly FleetKind[] | undefined;
  /** The objects that suffice if the caller may not list their kind. */
  readonly named?: NamedObjects | undefined;
  /** An existing connection, which stays open. Default: one is created for this snapshot. */
  readonly api?: KubeApi | undefined;
}

/** Reads the fleet. `--from` contacts no cluster. Throws for an invalid file, object or cluster. */
export async function readFleet(
  source: SnapshotSource,
  needs: SnapshotNeeds,
  io: CommandIo,
): Promise<FleetSnapshot> {
  const fixed = source.filename.length > 0 ? await readPolicyFiles(source.filename, io) : undefined;
  for (const warning of fixed?.warnings ?? []) io.err(`lastcall: ${warning}\n`);
  const { objects, ...when } =
    source.from.length > 0
      ? await readFiles(source.from, io)
      : await readCluster(source, { ...needs, policies: fixed === undefined }, io);
  const translated = { ...when, ...(await translateAll(objects)) };
  return fixed === undefined
    ? translated
    : { ...translated, policies: fixed.policies, badPolicies: [], policyRemarks: [] };
}

async function readFiles(from: readonly string[], io: CommandIo) {
  const objects = distinct(await readChecked(from, io));
  const recordedAt = newestReport(objects);
  return { objects, readAt: io.clock.now(), recordedAt, operation: undefined };
}

/** A kubelet reports the conditions of its node at least every five minutes. */
export function newestReport(objects: readonly KubeObject[]): Instant | undefined {
  const reports = objects
    .filter(({ kind }) => kind === "Node")
    .flatMap(({ status }) => listOf(valueAt(status, ["conditions"])))
    .flatMap(
      (condition) => parseInstant(textOf(fieldsOf(condition).lastHeartbeatTime) ?? "") ?? [],
    );
  return reports.reduce<Instant | undefined>((newest, at) => later(newest ?? at, at), undefined);
}

async function readChecked(from: readonly string[], io: CommandIo): Promise<readonly KubeObject[]> {
  const read = await readObjects(from, nodeFiles(io.files.stdinBytes()));
  for (const one of read) checkObject(one);
  checkForNodes(read);
  return read.map(({ object }) => object);
}

/**
 * Policies, workloads or the Status of a refusal are probably the wrong file. Throws INPUT_INVALID.
 * An empty List is a cluster without nodes.
 */
function checkForNodes(read: readonly ReadObject[]): void {
  const kinds = new Set(read.map(({ object }) => object.kind ?? ""));
  if (kinds.size === 0 || kinds.has("Node") || kinds.has("NodeList")) return;
  const files = [...new Set(read.map(({ file }) => file))].join(", ");
  const found = nameOf([...kinds].toSorted().join(", "));
  throw new LastcallError(
    "INPUT_INVALID",
    `Cannot read ${files}: found ${found} and no Node, expected the output of kubectl get nodes,pods,pdb -A -o json`,
  );
}

/**
 * Files may overlap: the last copy of an object counts. A handwritten object may have no uid; its
 * name is used instead.
 */
function distinct(objects: readonly KubeObject[]): readonly KubeObject[] {
  const found = new Map<string, KubeObject>();
  for (const object of objects) {
    const { namespace = "", name = "", uid } = object.metadata ?? {};
    const place = `${namespace}/${name}`;
    const known = uid ? object : { ...object, metadata: { ...object.metadata, uid: place } };
    found.set(`${object.kind} ${place}`, known);
  }
  return [...found.values()];
}

const unknownTimeWarning =
  "lastcall: The API server does not say what time it is, so this computer's clock is used: check that it is right\n";

interface ReadCluster extends Pick<FleetSnapshot, "readAt" | "operation" | "unlisted"> {
  readonly objects: readonly KubeObject[];
}

interface ClusterNeeds extends SnapshotNeeds {
  readonly policies: boolean;
}

async function readCluster(
  source: SnapshotSource,
  needs: ClusterNeeds,
  io: CommandIo,
): Promise<ReadCluster> {
  const paths = await import("../../kube/object/api-call.ts");
  const { onServerTime } = await import("../../kube/server-clock.ts");
  const { close, namespace, ...connected } = needs.api
    ? { api: needs.api, close: () => {}, namespace: "lastcall" }
    : await connect({ ...source, signal: io.signal }, io);
  const { api, clock: serverClock } = onServerTime(connected.api, io.clock);
  const node = needs.podsOfNode;
  const kinds = [
    { kind: "Node", path: paths.nodesPath },
    { kind: "Departure", path: paths.departuresPath },
    ...(needs.policies ? [{ kind: "DeparturePolicy", path: paths.policiesPath }] : []),
    ...(node === undefined
      ? []
      : [
          { kind: "PodDisruptionBudget", path: paths.budgetsPath },
          {
            kind: "Namespace",
            path: paths.namespacesPath,
            query: { fieldSelector: "status.phase=Terminating" },
          },
          {
            kind: "Pod",
            path: paths.podsPath,
            query: { fieldSelector: `spec.nodeName=${node}` },
          },
          { kind: "DaemonSet", path: paths.daemonSetsPath },
        ]),
  ];
  try {
    const lists = kinds.map((wanted) => readKind(wanted, { api, needs }));
    // Instants that are written are relative to this time, so the lists state it as well.
    const clock = new ClusterClock(api, serverClock);
    const [read] = await Promise.all([Promise.all(lists), clock.ask(io.signal)]);
    const readAt = clock.now();
    if (!clock.hasOwnTime() && !serverClock.isKnown()) io.err(unknownTimeWarning);
    const operation = needs.operation
      ? await readOperation({ api, namespace: source.namespace ?? namespace }, { at: readAt })
      : undefined;
    return {
      objects: read.flatMap(({ objects }) => objects),
      unlisted: read.flatMap(({ unlisted }) => unlisted ?? []),
      ...{ readAt, operation: operation?.operation },
    };
  } finally {
    close();
  }
}

interface WantedKind {
  readonly kind: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
}

interface ReadKind {
  readonly objects: readonly KubeObject[];
  readonly unlisted?: string | undefined;
}

async function readKind(
  { kind, path, query = {} }: WantedKind,
  { api, needs }: { readonly api: KubeApi; readonly needs: ClusterNeeds },
): Promise<ReadKind> {
  const { listAll } = await import("../../kube/watch/collection.ts");
  const { resourceOf } = await import("../../kube/object/api-call.ts");
  try {
    const found = await listAll(api, path, query);
    if (found.length === 0) return { objects: [{ kind: `${kind}List` }] };
    return { objects: found.map((object) => ({ ...object, kind })) };
  } catch (error) {
    const code = isLastcallError(error) ? error.code : undefined;
    // A policy can be tried on a cluster where nothing is installed yet.
    if (!needs.policies && code === "CRD_MISSING") return { objects: [] };
    // Useful for the plan, but must not require a permission that the caller may lack.
    const isExtra = kind === "Namespace" || kind === "DaemonSet";
    if (isExtra && code === "RIGHT_MISSING") return { objects: [] };
    if (code !== "RIGHT_MISSING") throw error;
    const unlisted = resourceOf({ path });
    if (needs.optional?.some((one) => one === kind)) return { objects: [], unlisted };
    if (needs.named?.kind !== kind) throw error;
    const named = await Promise.all(
      needs.named.names.map((name) => readNamed(api, { path, name })),
    );
    return { objects: named.flat().map((object) => ({ ...object, kind })), unlisted };
  }
}

/** Nothing if there is no such object. */
async function readNamed(
  api: KubeApi,
  { path, name }: { readonly path: string; readonly name: string },
): Promise<readonly KubeObject[]> {
  const { isGone, objectError } = await import("../../kube/object/api-call.ts");
  const request = { method: "GET", path: `${path}/${encodeURIComponent(name)}` } as const;
  const answer = await api.send(request);
  if (answer.status === 200) return [answer.body as KubeObject];
  if (isGone(answer)) return [];
  throw objectError(request, answer);
}

async function translateAll(
  objects: readonly KubeObject[],
): Promise<Omit<FleetSnapshot, "readAt" | "recordedAt" | "operation">> {
  const { translateNode } = await import("../../kube/object/translate-node.ts");
  const { translatePod } = await import("../../kube/object/translate-pod.ts");
  const { translateBudget } = await import("../../kube/object/translate-pod.ts");
  const { translateDeparture } = await import("../../kube/object/translate-departure.ts");
  const ofKind = (kind: string) => objects.filter((object) => object.kind === kind);
  const readings = ofKind("DeparturePolicy").map((object) =>
    readClusterPolicy(object, { cronProblem }),
  );
  return {
    nodes: ofKind("Node").map(translateNode),
    pods: ofKind("Pod").map(translatePod),
    budgets: ofKind("PodDisruptionBudget").map(translateBudget),
    terminatingNamespaces: new Set(
      ofKind("Namespace")
        .filter(({ status }) => fieldsOf(status).phase === "Terminating")
        .map(({ metadata }) => metadata?.name ?? ""),
    ),
    daemonSets: daemonSetsOf(objects),
    volumes: volumesOf(ofKind("PersistentVolume")),
    departures: ofKind("Departure").flatMap((object) => translateDeparture(object) ?? []),
    unreleasable: new Map(ofKind("DeparturePolicy").flatMap(unreleasableOf)),
    policies: readings.flatMap((one) => ("policy" in one ? one.policy : [])),
    badPolicies: readings.flatMap((one) => ("problem" in one ? one : [])),
    policyRemarks: readings.flatMap((one) =>
      "policy" in one ? one.remarks.map((text) => `Policy ${one.policy.name}: ${text}`) : [],
    ),
  };
}

/** A volume names the claim that it is bound to. */
function volumesOf(volumes: readonly KubeObject[]): FleetSnapshot["volumes"] {
  const found = new Map<string, Map<string, unknown>>();
  for (const { spec } of volumes) {
    const { namespace, name } = fieldsOf(valueAt(spec, ["claimRef"]));
    const [space, claim] = [textOf(namespace), textOf(name)];
    if (space === undefined || claim === undefined) continue;
    const ofNamespace = found.get(space) ?? new Map<string, unknown>();
    found.set(space, ofNamespace.set(claim, spec));
  }
  return found;
}

function unreleasableOf({ metadata, status }: KubeObject): readonly [string, ReleaseStanding][] {
  const { conditions } = (status ?? {}) as {
    conditions?: readonly Readonly<Record<string, string>>[];
  };
  const found = conditions?.find(({ type }) => type === "Feasible");
  if (!isReleaseReason(found?.reason)) return [];
  const { reason, message = "" } = found as { reason: ReleaseStanding["reason"]; message?: string };
  return [[metadata?.name ?? "", { reason, detail: message, nodes: [] }]];
}

/**
 * A DaemonSet that is not listed no longer exists, unless none was requested: files may hold nodes
 * and pods alone, or DaemonSets of other API groups.
 */
function daemonSetsOf(objects: readonly KubeObject[]): ReadonlySet<string> | undefined {
  // The items of a list from the API server have no apiVersion.
  const builtIn = objects.filter(({ apiVersion = "apps/v1" }) => apiVersion.startsWith("apps/"));
  if (!builtIn.some(({ kind }) => kind === "DaemonSet" || kind === "DaemonSetList"))
    return undefined;
  const found = builtIn.filter(({ kind }) => kind === "DaemonSet");
  return new Set(
    found.map(({ metadata = {} }) => `${metadata.namespace ?? "default"}/${metadata.name ?? ""}`),
  );
}
