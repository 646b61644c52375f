import type { Instant } from "../../src/core/time/time.ts";

/** The records of the Compute Engine server, and the response bodies that it builds from them. */

export interface ComputeGroup {
  readonly id: string;
  readonly name: string;
  readonly scope: "zones" | "regions";
  readonly location: string;
  readonly createdAt: Instant;
  targetSize: number;
}

export interface ComputeMachine {
  readonly id: string;
  readonly name: string;
  readonly zone: string;
  readonly group: ComputeGroup | undefined;
  readonly spot: boolean;
  readonly deletionProtection: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: Instant;
  startedAt: Instant;
  status: "PROVISIONING" | "STAGING" | "RUNNING" | "STOPPING" | "TERMINATED";
}

export interface OperationError {
  /** Such as `RESOURCE_NOT_READY`. */
  readonly code: string;
  readonly message: string;
  readonly httpStatus: number;
  /** Such as `BAD REQUEST`. */
  readonly httpMessage: string;
}

export interface ComputeOperation {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly scope: "zones" | "regions";
  readonly location: string;
  readonly targetPath: string;
  readonly targetId: string;
  readonly requestId: string | undefined;
  readonly insertAt: Instant;
  endAt: Instant | undefined;
  status: "RUNNING" | "DONE";
  error: OperationError | undefined;
  statusMessage: string | undefined;
}

export interface ComputeProject {
  readonly id: string;
  readonly number: string;
}

const base = "https://www.googleapis.com/compute/v1";

/**
 * Compute Engine writes instants with the offset of the Pacific coast:
 * `2019-03-27T21:12:30.713-07:00`.
 */
export function computeTime(at: Instant): string {
  return new Date(at - 7 * 3_600_000).toISOString().replace("Z", "-07:00");
}

function link(project: ComputeProject, path: string): string {
  return `${base}/projects/${project.id}/${path}`;
}

export function machineBody(machine: ComputeMachine, project: ComputeProject): object {
  const { group, zone, name } = machine;
  const creator =
    group &&
    `projects/${project.number}/${group.scope}/${group.location}/instanceGroupManagers/${group.name}`;
  return {
    kind: "compute#instance",
    id: machine.id,
    creationTimestamp: computeTime(machine.createdAt),
    name,
    zone: link(project, `zones/${zone}`),
    machineType: link(project, `zones/${zone}/machineTypes/e2-standard-4`),
    status: machine.status,
    labels: machine.labels,
    selfLink: link(project, `zones/${zone}/instances/${name}`),
    metadata: {
      kind: "compute#metadata",
      fingerprint: "kfdsuH",
      items: [
        { key: "cluster-name", value: "cluster-1" },
        ...(creator ? [{ key: "created-by", value: creator }] : []),
      ],
    },
    scheduling: {
      provisioningModel: machine.spot ? "SPOT" : "STANDARD",
      preemptible: machine.spot,
      automaticRestart: !machine.spot,
      ...(machine.spot ? { instanceTerminationAction: "STOP" } : {}),
    },
    deletionProtection: machine.deletionProtection,
    startRestricted: false,
    // Set by the first start, so a machine that is still being provisioned has none.
    ...(machine.status === "PROVISIONING"
      ? {}
      : { lastStartTimestamp: computeTime(machine.startedAt) }),
  };
}

export function operationBody(operation: ComputeOperation, project: ComputeProject): object {
  const { scope, location, name, error } = operation;
  const done = operation.endAt !== undefined;
  return {
    kind: "compute#operation",
    id: operation.id,
    name,
    [scope === "zones" ? "zone" : "region"]: link(project, `${scope}/${location}`),
    ...(operation.requestId ? { clientOperationId: operation.requestId } : {}),
    operationType: operation.type,
    targetLink: link(project, operation.targetPath),
    targetId: operation.targetId,
    status: operation.status,
    ...(operation.statusMessage ? { statusMessage: operation.statusMessage } : {}),
    user: operation.type.includes(".preempted") ? "system" : "user@example.com",
    progress: done ? 100 : 0,
    insertTime: computeTime(operation.insertAt),
    startTime: computeTime(operation.insertAt),
    ...(operation.endAt === undefined ? {} : { endTime: computeTime(operation.endAt) }),
    ...(error && done ? errorPart(error) : {}),
    selfLink: link(project, `${scope}/${location}/operations/${name}`),
  };
}

function errorPart(error: OperationError): object {
  return {
    error: { errors: [{ code: error.code, message: error.message }] },
    httpErrorStatusCode: error.httpStatus,
    httpErrorMessage: error.httpMessage,
  };
}

/** One instance, as in a response of listManagedInstances. */
export function managedBody(machine: ComputeMachine, project: ComputeProject): object {
  const { id, name, zone, status } = machine;
  return {
    ...{ id, name, instance: link(project, `zones/${zone}/instances/${name}`) },
    ...{ instanceStatus: status, currentAction: status === "RUNNING" ? "NONE" : "CREATING" },
  };
}

export function groupBody(group: ComputeGroup, project: ComputeProject): object {
  const place = `${group.scope}/${group.location}`;
  return {
    kind: "compute#instanceGroupManager",
    id: group.id,
    creationTimestamp: computeTime(group.createdAt),
    name: group.name,
    [group.scope === "zones" ? "zone" : "region"]: link(project, place),
    instanceTemplate: link(project, `global/instanceTemplates/${group.name}`),
    instanceGroup: link(project, `${place}/instanceGroups/${group.name}`),
    baseInstanceName: group.name,
    fingerprint: "kfdsuH",
    targetSize: group.targetSize,
    selfLink: link(project, `${place}/instanceGroupManagers/${group.name}`),
  };
}

/** `{"error":{"code":403,"message":"…","errors":[{"domain":"global","reason":"forbidden"}]}}`. */
export function errorBody(refusal: {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
}): object {
  const { status: code, reason, message } = refusal;
  const domain = reason === "rateLimitExceeded" ? "usageLimits" : "global";
  return { error: { code, message, errors: [{ message, domain, reason }] } };
}
