import type { Clock } from "../../contracts/clock.ts";
import type { ReleaseRequest } from "../../contracts/instance-releaser.ts";
import { backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import type { ComputeAnswer, ComputeCall, ComputeClient } from "./compute-client.ts";
import { faultOfOperation } from "./compute-fault.ts";
import {
  type GroupRef,
  type Instance,
  type InstanceRef,
  instancePath,
} from "./compute-instance.ts";

/** One act on the cloud, and where the operation that it starts is found. */
export interface ReleaseCall {
  /** Without the request id, which is another at each attempt. */
  readonly call: ComputeCall;
  /** What the act is done to, and its permission is needed on: a group or an instance. */
  readonly resource: { readonly kind: "Group" | "Instance"; readonly path: string };
  /** Such as `/projects/p/zones/z/operations`. */
  readonly operationsPath: string;
  /** The permission that waiting for the operation needs. */
  readonly operationsPermission: string;
}

/** The target and what was just seen of it. */
export interface ReleaseTarget {
  readonly ref: InstanceRef;
  readonly instance: Instance;
  readonly mode: ReleaseRequest["mode"];
}

/**
 * The call that lets a machine go: by its group in the modes Recreate and Delete, since a deletion
 * behind a group's back is undone at a time of the group's choosing; directly in DeleteInstance.
 * Throws CLOUD_REFUSED when the mode needs a group and the machine names none.
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
      // A deletion that is under way already is no fault of the second request.
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

/** Wait may hold the request for two minutes; its connection gets half a minute more. */
const waitTimeoutMs = seconds(150);
/** Wait may also answer at once although nothing is done, so calls are kept a little apart. */
const waitRule = { firstMs: seconds(1), mostMs: seconds(8) };

export type OperationEnd =
  | { readonly kind: "Done" }
  | { readonly kind: "Failed"; readonly fault: LastcallError }
  /** The limit came first, or the cloud knows the operation no more: only the machine can tell. */
  | { readonly kind: "Unknown" };

export interface OperationWait {
  readonly started: ReleaseCall;
  /** The body that the act was answered with. */
  readonly operation: Readonly<Record<string, unknown>>;
  readonly client: ComputeClient;
  readonly clock: Clock;
  readonly rng: Rng;
  /** On the monotonic clock, in milliseconds. */
  readonly giveUpAt: number;
}

/**
 * Waits until an operation is DONE and says how it ended; that the request was taken with 200 says
 * nothing about that. Throws `LastcallError` when the cloud stops answering.
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
  // The name goes into a path, so it is held to the form of one.
  if (typeof name !== "string" || !/^[A-Za-z0-9][-A-Za-z0-9]*$/.test(name)) {
    throw new LastcallError(
      "CLOUD_UNREACHABLE",
      `Cannot ${started.call.action}: found an answer that is no operation, expected one`,
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
