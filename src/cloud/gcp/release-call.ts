import type { Clock } from "../../contracts/clock.ts";
import type { Releasability, ReleaseRequest } from "../../contracts/cloud.ts";
import { backoffMs, type Rng } from "../../core/chance/chance.ts";
import { seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import {
  type ComputeAnswer,
  type ComputeCall,
  type ComputeClient,
  faultOfOperation,
} from "./compute-client.ts";
import {
  type ComputeInstanceRef,
  type GroupRef,
  type Instance,
  instancePath,
} from "./compute-instance.ts";

/** One request to the cloud, and where to find the operation that it starts. */
interface ReleaseCall {
  /** Without the request id, which differs with each attempt. */
  readonly call: ComputeCall;
  /** The resource that it acts on and needs the permission for: a group or an instance. */
  readonly resource: { readonly kind: "Group" | "Instance"; readonly path: string };
  /** Such as `/projects/p/zones/z/operations`. */
  readonly operationsPath: string;
  /** The permission that waiting for the operation needs. */
  readonly operationsPermission: string;
}

/** The target and what was just seen of it. */
interface ReleaseTarget {
  readonly ref: ComputeInstanceRef;
  readonly instance: Instance;
  readonly mode: ReleaseRequest["mode"];
}

/**
 * Chooses the call that releases a machine: through its group in the modes Recreate and Delete,
 * because a group reverts a deletion that it did not make, at a time of its own choosing; directly
 * in DeleteInstance. Throws CLOUD_REFUSED if the mode needs a group and the machine names none.
 */
export function releaseCall(target: ReleaseTarget): ReleaseCall {
  if (target.mode === "DeleteInstance") return deletionCall(target);
  const { group } = target.instance;
  if (group === undefined) throw groupMissing(target);
  return groupCall(target, group);
}

function deletionCall(target: ReleaseTarget): ReleaseCall {
  const { ref } = target;
  const path = instancePath(ref);
  return {
    resource: { kind: "Instance", path },
    call: {
      method: "DELETE",
      path,
      action: `delete the instance ${ref.project}/${ref.zone}/${ref.name}`,
      permission: "compute.instances.delete",
    },
    operationsPath: `/projects/${ref.project}/zones/${ref.zone}/operations`,
    operationsPermission: "compute.zoneOperations.get",
  };
}

function groupCall(target: ReleaseTarget, group: GroupRef): ReleaseCall {
  const { ref, mode } = target;
  const place = `/projects/${ref.project}/${group.scope}/${group.location}`;
  const path = `${place}/instanceGroupManagers/${group.name}`;
  const instances = [`zones/${ref.zone}/instances/${ref.name}`];
  const recreate = mode === "Recreate";
  const method = recreate ? "recreateInstances" : "deleteInstances";
  return {
    resource: { kind: "Group", path },
    call: {
      method: "POST",
      path: `${path}/${method}`,
      // A deletion that is in progress already is not an error of the second request.
      body: recreate ? { instances } : { instances, skipInstancesOnValidationError: true },
      action: `${recreate ? "recreate" : "delete"} ${ref.name} in the group ${group.name}`,
      permission: "compute.instanceGroupManagers.update",
    },
    operationsPath: `${place}/operations`,
    operationsPermission: `compute.${group.scope === "zones" ? "zone" : "region"}Operations.get`,
  };
}

function groupMissing(target: ReleaseTarget): LastcallError {
  const { ref, mode } = target;
  const found = `found no managed group (metadata item created-by) with instance.release: ${mode}`;
  return new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release ${ref.project}/${ref.zone}/${ref.name}: ${found}, expected instance.release: DeleteInstance for a machine without a group`,
  );
}

/** `wait` may hold the request for two minutes; its connection gets half a minute more. */
const waitTimeoutMs = seconds(150);
/** `wait` may also return at once although nothing is done, so there is a pause between calls. */
const waitRule = { firstMs: seconds(1), mostMs: seconds(8) };

type OperationEnd =
  | { readonly kind: "Done" }
  | { readonly kind: "Failed"; readonly fault: LastcallError }
  /**
   * The limit was reached, or the operation is no longer known: only the instance's own state
   * tells.
   */
  | { readonly kind: "Unknown" };

interface OperationWait {
  readonly started: ReleaseCall;
  /** The body of the response to the request. */
  readonly operation: Readonly<Record<string, unknown>>;
  readonly client: ComputeClient;
  readonly clock: Clock;
  readonly rng: Rng;
  /** On the monotonic clock, in milliseconds. */
  readonly giveUpAt: number;
}

/**
 * Waits until an operation is DONE and returns how it ended, which the 200 for its request does not
 * tell. Throws `LastcallError` if the cloud stops responding.
 */
export async function awaitOperation(
  wait: OperationWait,
  signal: AbortSignal,
): Promise<OperationEnd> {
  const { client, clock, rng } = wait;
  const call = waitCall(wait);
  let answer: ComputeAnswer = { kind: "Found", body: wait.operation };
  for (let round = 0; ; round++) {
    if (answer.kind === "NotFound") return { kind: "Unknown" };
    if (answer.body.status === "DONE") return endOf(answer.body, wait.started);
    if (clock.monotonic() >= wait.giveUpAt) return { kind: "Unknown" };
    if (round > 0) await clock.sleep(backoffMs(round - 1, rng, waitRule), signal);
    answer = await client.sendPatiently(call, signal);
  }
}

function waitCall(wait: OperationWait): ComputeCall {
  const { started, operation } = wait;
  const name = operation.name;
  // The name becomes part of a path, so its form is checked.
  if (typeof name !== "string" || !/^[A-Za-z0-9][-A-Za-z0-9]*$/.test(name)) {
    throw new LastcallError(
      "CLOUD_UNREACHABLE",
      `Cannot ${started.call.action}: found a response that is not an operation, expected one`,
    );
  }
  return {
    method: "POST",
    path: `${started.operationsPath}/${name}/wait`,
    timeoutMs: waitTimeoutMs,
    action: `wait for the operation ${name}`,
    permission: started.operationsPermission,
  };
}

function endOf(body: Readonly<Record<string, unknown>>, started: ReleaseCall): OperationEnd {
  const fault = faultOfOperation(body, started.call);
  return fault === undefined ? { kind: "Done" } : { kind: "Failed", fault };
}

/** The machine to check, as last read; undefined if there is none. */
type CheckTarget = Pick<ReleaseTarget, "ref" | "mode"> & {
  readonly instance: Instance | undefined;
};

type Permission = "Granted" | "Unknown" | "Missing";

/**
 * The name of an operation that does not exist: with the permission to read operations, the
 * response is 404.
 */
const noOperation = "lastcall-check";

/** Whether the release of a machine would be accepted, by calls that change nothing. */
export async function checkRelease(
  { ref, mode, instance }: CheckTarget,
  client: ComputeClient,
  signal: AbortSignal,
): Promise<Releasability> {
  const machine = `${ref.project}/${ref.zone}/${ref.name}`;
  if (instance === undefined) return impossible(`Compute Engine has no instance ${machine}`);
  // It is already being deleted, so no permission is needed.
  if (instance.stage !== "Running") return { kind: "Possible", permission: "Unknown" };
  if (mode === "DeleteInstance" && instance.isProtected) {
    return impossible(`the instance ${machine} has deletion protection, disable it first`);
  }
  const act = releaseCall({ ref, mode, instance });
  const [toAct, toWait] = await Promise.all([
    permissionToAct(act, client, signal),
    permissionToWait(act, client, signal),
  ]);
  if (toAct === "Missing") return impossible(missing(act.call.permission, act.resource.path));
  if (toWait === "Missing")
    return impossible(missing(act.operationsPermission, act.operationsPath));
  return { kind: "Possible", permission: toAct };
}

/**
 * By `testIamPermissions`, which groups have only in the beta API. If it is refused or unknown,
 * that proves nothing; it is documented to err on the side of "granted".
 */
async function permissionToAct(
  { call, resource }: ReleaseCall,
  client: ComputeClient,
  signal: AbortSignal,
): Promise<Permission> {
  const { permission } = call;
  const ask = {
    method: "POST",
    version: resource.kind === "Group" ? "beta" : "v1",
    path: `${resource.path}/testIamPermissions`,
    body: { permissions: [permission] },
    action: `check whether ${permission} is granted`,
    permission: `compute.${resource.kind === "Group" ? "instanceGroupManagers" : "instances"}.list`,
  } as const;
  const answer = await client.sendPatiently(ask, signal).catch(unlessRefused);
  if (answer?.kind !== "Found") return "Unknown";
  const { permissions = [] } = answer.body;
  if (!Array.isArray(permissions)) return "Unknown";
  return permissions.includes(permission) ? "Granted" : "Missing";
}

/** Without it, a release that was accepted could not be followed to its end. */
async function permissionToWait(
  { operationsPath, operationsPermission }: ReleaseCall,
  client: ComputeClient,
  signal: AbortSignal,
): Promise<Permission> {
  const ask = {
    method: "GET",
    path: `${operationsPath}/${noOperation}`,
    action: "check whether operations can be read",
    permission: operationsPermission,
  } as const;
  try {
    const answer = await client.sendPatiently(ask, signal);
    return answer.kind === "NotFound" ? "Granted" : "Unknown";
  } catch (error) {
    if (isLastcallError(error) && error.code === "CLOUD_RIGHT_MISSING") return "Missing";
    return unlessRefused(error) ?? "Unknown";
  }
}

/**
 * A check that is refused, even by an endpoint that does not know it, leaves the answer open; any
 * other fault is the cloud's.
 */
function unlessRefused(error: unknown): undefined {
  const code = isLastcallError(error) ? error.code : undefined;
  if (code !== "CLOUD_RIGHT_MISSING" && code !== "CLOUD_REFUSED") throw error;
  return undefined;
}

function missing(permission: string, path: string): string {
  return `the permission ${permission} is not granted on ${path.slice(1)}, grant it with: lastcall setup gcp`;
}

function impossible(problem: string): Releasability {
  return { kind: "Impossible", problem };
}
