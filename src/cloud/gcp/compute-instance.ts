import type { MachineNames } from "../../core/cluster/machine-name.ts";
import {
  type Fields,
  fieldsOf,
  instantOf,
  textOf,
  trimmedTextOf,
} from "../../core/json/json-field.ts";
import type { Instant } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { parseComputeId } from "./gcp-facts.ts";

/** The location of an instance. */
export interface ComputeInstanceRef {
  readonly project: string;
  readonly zone: string;
  readonly name: string;
}

/** The managed group that created an instance. */
export interface GroupRef {
  readonly scope: "zones" | "regions";
  readonly location: string;
  readonly name: string;
}

/**
 * The cluster of an instance, according to GKE's labels. Two clusters of the same name differ in
 * location.
 */
export interface ClusterLabels {
  readonly name: string;
  /** Undefined on instances that tools other than GKE created, such as an older Karpenter. */
  readonly location: string | undefined;
}

/** The fields of an instance that a release needs. */
export interface Instance {
  /** A number, as text; a machine recreated under the same name has another. */
  readonly id: string;
  readonly stage: InstanceStage;
  /** The status as Compute Engine spells it, for messages. */
  readonly status: string;
  readonly bornAt: Instant | undefined;
  /** When it was read, by Google's clock; absent if the response did not say. */
  readonly asOf?: Instant | undefined;
  /** The last start; a machine that was stopped and started keeps its id, but not this time. */
  readonly startedAt: Instant | undefined;
  readonly group: GroupRef | undefined;
  /** The GKE cluster that it was created for. */
  readonly cluster: ClusterLabels | undefined;
  /** Deletion protection: the API refuses to delete it. */
  readonly isProtected: boolean;
  /** The host name that was chosen for it; otherwise it is its name, with a domain. */
  readonly hostname: string | undefined;
}

/** Node names are instance names. Source: cloud-provider-gcp gce_util.go, mapInstanceToNodeName. */
export function namesOf(
  { name }: Pick<ComputeInstanceRef, "name">,
  { hostname }: Pick<Instance, "hostname">,
): MachineNames {
  return { hosts: hostname === undefined ? [name] : [name, hostname] };
}

/**
 * Running: it exists and runs. Leaving: a stop or a deletion is in progress. Stopped: nothing runs
 * on it.
 */
type InstanceStage = "Running" | "Leaving" | "Stopped";

/** Resource names come from the cluster; an invalid name must not become part of a path. */
const resourceName = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
const projectName = /^([a-z0-9][-a-z0-9]*(\.[a-z0-9][-a-z0-9]*)*:)?[a-z0-9][-a-z0-9]*$/;

/** Reads `gce://project/zone/name`; undefined for anything else, such as an invalid name. */
export function findInstanceRef(providerID: string): ComputeInstanceRef | undefined {
  const machine = parseComputeId(providerID);
  if (machine === undefined) return undefined;
  const { project, zone, instance: name } = machine;
  const named = resourceName.test(zone) && resourceName.test(name) && projectName.test(project);
  return named ? { project, zone, name } : undefined;
}

/** Like `findInstanceRef`, but throws CLOUD_REFUSED if there is none; nothing is sent then. */
export function instanceRefOf(providerID: string): ComputeInstanceRef {
  const ref = findInstanceRef(providerID);
  if (ref !== undefined) return ref;
  throw new LastcallError(
    "CLOUD_REFUSED",
    `Cannot find the machine: found the providerID ${JSON.stringify(providerID)}, expected gce://project/zone/instance`,
  );
}

/** `/projects/P/zones/Z/instances/N`. */
export function instancePath(ref: ComputeInstanceRef): string {
  return `/projects/${ref.project}/zones/${ref.zone}/instances/${ref.name}`;
}

/** Reads what a release needs from an instance resource; undefined if it is not one. */
export function readInstance(body: Readonly<Record<string, unknown>>): Instance | undefined {
  const { id, status } = body;
  if (typeof id !== "string" || id === "" || typeof status !== "string") return undefined;
  const startedAt = instantOf(body.lastStartTimestamp);
  const bornAt = launchTimeOf(body);
  const isProtected = body.deletionProtection === true;
  const group = groupOf(body.metadata);
  const cluster = clusterOf(body);
  const hostname = trimmedTextOf(body.hostname);
  const stage = stageOf(status);
  return { id, status, stage, bornAt, startedAt, group, cluster, isProtected, hostname };
}

/** The label by which a cluster's instances are listed. */
export const clusterLabel = "goog-k8s-cluster-name";

/** Undefined if the labels name no cluster. */
export function clusterOf(body: Fields): ClusterLabels | undefined {
  const labels = fieldsOf(body.labels);
  const name = textOf(labels[clusterLabel]) ?? "";
  // It becomes part of a filter.
  if (!/^[-_a-z0-9]{1,63}$/.test(name)) return undefined;
  return { name, location: trimmedTextOf(labels["goog-k8s-cluster-location"]) };
}

/** A stop and a start restart the 24 hours of a preemptible machine, so the last start counts. */
export function launchTimeOf(body: Readonly<Record<string, unknown>>): Instant | undefined {
  return instantOf(body.lastStartTimestamp) ?? instantOf(body.creationTimestamp);
}

/**
 * The statuses of the discovery document, including those of newer versions. An unknown one counts
 * as Running: only a known status means that a machine is gone.
 */
function stageOf(status: string): InstanceStage {
  switch (status) {
    case "STOPPING":
    case "PENDING_STOP":
    case "DEPROVISIONING":
      return "Leaving";
    case "TERMINATED":
    case "STOPPED":
      return "Stopped";
    default:
      return "Running";
  }
}

const createdBy =
  /(?:^|\/)projects\/[^/]+\/(zones|regions)\/([^/]+)\/instanceGroupManagers\/([^/]+)$/;

/**
 * The metadata item `created-by` holds
 * `projects/<number>/zones/<zone>/instanceGroupManagers/<name>`, or `regions` for a regional group.
 * Source: cluster-autoscaler, autoscaling_gce_client.go.
 */
function groupOf(metadata: unknown): GroupRef | undefined {
  const items = (metadata as { readonly items?: unknown } | undefined)?.items;
  if (!Array.isArray(items)) return undefined;
  const item: unknown = items.find((candidate) => candidate?.key === "created-by");
  const value = (item as { readonly value?: unknown } | undefined)?.value;
  const match = typeof value === "string" ? createdBy.exec(value) : null;
  if (match === null) return undefined;
  const [, scope, location, name] = match as unknown as [string, GroupRef["scope"], string, string];
  if (!resourceName.test(location) || !resourceName.test(name)) return undefined;
  return { scope, location, name };
}
