import type { ReleaseRequest } from "../../contracts/instance-releaser.ts";
import { LastcallError } from "../../errors.ts";
import type { ComputeCall } from "./compute-client.ts";
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
