import { clouds } from "../../cloud/clouds.ts";
import { spotLabels } from "../../cloud/facts/cloud-marks.ts";
import type { Taint } from "../../core/cluster/node.ts";
import {
  groupsOfPair,
  inShutdownOrder,
  type ShutdownGroup,
} from "../../core/drain-plan/drain-order.ts";
import {
  describeValue,
  type Fields,
  fieldsOf,
  isFields,
  listOf,
  textOf,
  valueAt,
  wholeNumberOf,
} from "../../core/json/json-field.ts";
import { type Millis, millis, parseDuration } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { type BudgetSource, knownPlatform, type Platform, problemOfPair } from "../platform.ts";
import type { FieldPointer, Manifest } from "./manifest.ts";

/** What the audit knows of a node. */
export interface AuditNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly spot: boolean;
  readonly providerID: string;
  /** `status.nodeInfo.kubeletVersion`, such as `v1.34.2-eks-1a2b3c4`. */
  readonly kubeletVersion: string;
  /** `status.nodeInfo.osImage`, such as `Amazon Linux 2023.9`. */
  readonly osImage: string;
}

/** A platform of nodes in the input, with those nodes. */
export interface NodePlatform extends Platform {
  readonly nodes: readonly AuditNode[];
}

export function readNodes(manifests: readonly Manifest[]): readonly AuditNode[] {
  return manifests
    .filter((manifest) => manifest.kind === "Node" && manifest.group === "")
    .map(readNode);
}

export function readNode({ name, labels, json }: Manifest): AuditNode {
  const info = fieldsOf(valueAt(json, ["status", "nodeInfo"]));
  return {
    name,
    labels,
    taints: listOf(valueAt(json, ["spec", "taints"])).map(
      (item) => fieldsOf(item) as unknown as Taint,
    ),
    spot: isSpot(labels),
    providerID: textOf(valueAt(json, ["spec", "providerID"])) ?? "",
    kubeletVersion: textOf(info.kubeletVersion) ?? "",
    osImage: textOf(info.osImage) ?? "",
  };
}

/**
 * One node of each kind: nodes that differ only in their names accept the same pods and give them
 * the same grace.
 */
export function distinctNodes(nodes: readonly AuditNode[]): readonly AuditNode[] {
  const sorts = new Map<string, AuditNode>();
  for (const node of nodes) {
    const { name: _name, providerID, labels, ...rest } = node;
    const { "kubernetes.io/hostname": _hostname, ...shared } = labels;
    const cloud = providerID.slice(0, providerID.indexOf(":"));
    const sort = JSON.stringify([cloud, Object.entries(shared).sort(), rest]);
    if (!sorts.has(sort)) sorts.set(sort, node);
  }
  return [...sorts.values()];
}

/**
 * The platforms of the nodes that matter: the Spot nodes, or all if none is marked Spot. A budget
 * read from the node's kubelet (`read`, by node name) takes precedence over the platform's default.
 * Nodes with one budget are one platform.
 */
export function platformsOfNodes(
  nodes: readonly AuditNode[],
  read: ReadonlyMap<string, readonly ShutdownGroup[]>,
): readonly NodePlatform[] {
  const spot = nodes.filter((node) => node.spot);
  const seen = new Map<string, { platform: Platform; nodes: AuditNode[] }>();
  for (const node of spot.length > 0 ? spot : nodes) {
    const groups = read.get(node.name);
    const platform = groups === undefined ? defaultPlatformOf(node) : readPlatform(groups);
    const entry = seen.get(platform.name) ?? { platform, nodes: [] };
    entry.nodes.push(node);
    seen.set(platform.name, entry);
  }
  return [...seen.values()].map((entry) => ({ ...entry.platform, nodes: entry.nodes }));
}

/** The names of GKE Autopilot's nodes, whose kubelets cannot be queried. */
export function isAutopilot(nodeName: string): boolean {
  return nodeName.startsWith("gk3-");
}

/** The default of the platform for such a node, by provider, version and image. */
function defaultPlatformOf(node: AuditNode): Platform {
  const cloud = clouds.find(({ facts }) => node.providerID.startsWith(facts.scheme));
  const name = cloud?.audit.platformOf(node);
  return name === undefined
    ? { name: "unknown", groups: [], source: "Unknown" }
    : knownPlatform(name);
}

function readPlatform(groups: readonly ShutdownGroup[]): Platform {
  const source: BudgetSource = "Read";
  if (groups.length === 0) return { name: "kubelet:0s/0s", groups, source };
  const name = groups.map((group) => `${group.priority}=${group.seconds}s`).join(",");
  return { name: `kubelet:${name}`, groups, source };
}

/** Whether a node's labels say that it is a Spot or preemptible one. */
export function isSpot(labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(spotLabels).some(([key, { spot }]) => spot.includes(labels[key] ?? ""));
}

/** The place of a field in a sentence: `kubelet.yaml:7`, or the kubelet of a node. */
export type PlaceOfField = (field: FieldPointer) => string;

/**
 * The shutdown groups of a KubeletConfiguration, or of the kubelet's `configz` response
 * (`{"kubeletconfig": {…}}`). Throws INPUT_INVALID for what the kubelet itself would refuse;
 * periods that a feature gate turns off grant nothing, whether or not the kubelet would refuse
 * them.
 */
export function readKubeletConfiguration(
  json: unknown,
  place: PlaceOfField,
): readonly ShutdownGroup[] {
  const outer = fieldsOf(json);
  const isAnswer = isFields(outer.kubeletconfig);
  const config = isAnswer ? fieldsOf(outer.kubeletconfig) : outer;
  const placed = { config, place: isAnswer ? within("kubeletconfig", place) : place };
  if (!isAnswer && outer.kind !== "KubeletConfiguration") {
    const kind = describeValue(outer.kind);
    throw invalid(place(["kind"]), `its kind is ${kind}, expected KubeletConfiguration`);
  }
  const totalMs = readPeriod("shutdownGracePeriod", placed);
  const criticalMs = readPeriod("shutdownGracePeriodCriticalPods", placed);
  const byPriority = readGroups(placed);
  if (byPriority.length > 0 && (totalMs > 0 || criticalMs > 0)) {
    throw invalid(
      placed.place([byPriorityField]),
      "it sets shutdownGracePeriod and shutdownGracePeriodByPodPriority, expected one of them",
    );
  }
  const problem = problemOfPair(totalMs, criticalMs);
  if (problem !== undefined) throw invalid(placed.place(["shutdownGracePeriod"]), problem);
  if (!isEnabled("GracefulNodeShutdown", placed)) return [];
  if (byPriority.length === 0) return groupsOfPair(totalMs, criticalMs);
  return isEnabled("GracefulNodeShutdownBasedOnPodPriority", placed) ? byPriority : [];
}

interface PlacedConfiguration {
  readonly config: Fields;
  readonly place: PlaceOfField;
}

function within(field: string, place: PlaceOfField): PlaceOfField {
  return (pointer) => place([field, ...pointer]);
}

/**
 * Both gates have been in beta, and on, since Kubernetes 1.21 and 1.24, so that `AllBeta: false`
 * turns them off as well. Source: kubernetes 1.36 pkg/features/kube_features.go.
 */
function isEnabled(gate: string, { config, place }: PlacedConfiguration): boolean {
  const gates = fieldsOf(config.featureGates);
  const [name, written] =
    gates[gate] === undefined ? ["AllBeta", gates.AllBeta] : [gate, gates[gate]];
  if (written === undefined) return true;
  if (typeof written === "boolean") return written;
  const found = describeValue(written);
  throw invalid(
    place(["featureGates", name]),
    `featureGates.${name} is ${found}, expected true or false`,
  );
}

function readPeriod(field: string, { config, place }: PlacedConfiguration): Millis {
  const written = config[field];
  if (written === undefined || written === null) return millis(0);
  const period = typeof written === "string" ? parseDuration(written) : undefined;
  if (period !== undefined) return period;
  const found = describeValue(written);
  throw invalid(place([field]), `${field} is ${found}, expected a Go duration such as "30s"`);
}

const byPriorityField = "shutdownGracePeriodByPodPriority";

function readGroups({ config, place }: PlacedConfiguration): readonly ShutdownGroup[] {
  const written = config[byPriorityField] ?? [];
  if (!Array.isArray(written)) {
    const found = describeValue(written);
    throw invalid(place([byPriorityField]), `${byPriorityField} is ${found}, expected a list`);
  }
  const groups = written.map((item: unknown, index) => {
    const priority = wholeNumberOf(fieldsOf(item).priority);
    const seconds = wholeNumberOf(fieldsOf(item).shutdownGracePeriodSeconds);
    if (priority !== undefined && seconds !== undefined && seconds >= 0) {
      return { priority, seconds };
    }
    throw invalid(
      place([byPriorityField, index]),
      `${byPriorityField}[${index}] is not understood, expected whole numbers priority and shutdownGracePeriodSeconds from 0 on`,
    );
  });
  return inShutdownOrder(groups);
}

function invalid(place: string, problem: string): LastcallError {
  return new LastcallError(
    "INPUT_INVALID",
    `Cannot read the kubelet's budget from ${place}: ${problem}`,
  );
}
