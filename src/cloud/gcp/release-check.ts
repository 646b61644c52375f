import type { Releasability } from "../../contracts/instance-releaser.ts";
import { isLastcallError } from "../../errors.ts";
import type { ComputeClient } from "./compute-client.ts";
import type { Instance } from "./compute-instance.ts";
import { type ReleaseCall, type ReleaseTarget, releaseCall } from "./release-call.ts";

/** The machine that is asked about, as it was just seen; undefined where there is none. */
export type CheckTarget = Pick<ReleaseTarget, "ref" | "mode"> & {
  readonly instance: Instance | undefined;
};

type Permission = "Granted" | "Unknown" | "Missing";

/** The name of no operation: who may read operations is told that there is none of this name. */
const noOperation = "lastcall-check";

/** Whether the release of a machine would be taken, asked by calls that change nothing. */
export async function checkRelease(
  { ref, mode, instance }: CheckTarget,
  client: ComputeClient,
  signal: AbortSignal,
): Promise<Releasability> {
  const machine = `${ref.project}/${ref.zone}/${ref.name}`;
  if (instance === undefined) return impossible(`Compute Engine has no instance ${machine}`);
  // It is going, whoever asked for that: nothing has to be permitted any more.
  if (instance.stage !== "Running") return { kind: "Possible", permission: "Unknown" };
  if (mode === "DeleteInstance" && instance.isProtected) {
    return impossible(`the instance ${machine} has deletion protection, turn it off first`);
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
 * By `testIamPermissions`, which groups have in the beta API only. Where that is refused or not
 * known, it tells nothing; documented to err on the side of "granted".
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
    action: `ask whether ${permission} is granted`,
    permission: `compute.${resource.kind === "Group" ? "instanceGroupManagers" : "instances"}.list`,
  } as const;
  const answer = await client.sendPatiently(ask, signal).catch(unlessRefused);
  if (answer?.kind !== "Found") return "Unknown";
  const { permissions = [] } = answer.body;
  if (!Array.isArray(permissions)) return "Unknown";
  return permissions.includes(permission) ? "Granted" : "Missing";
}

/** Without it a release that was taken could not be followed to its end. */
async function permissionToWait(
  { operationsPath, operationsPermission }: ReleaseCall,
  client: ComputeClient,
  signal: AbortSignal,
): Promise<Permission> {
  const ask = {
    method: "GET",
    path: `${operationsPath}/${noOperation}`,
    action: "ask whether operations can be read",
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
 * A question that is refused, also by an endpoint that does not know it, leaves open what was
 * asked; any other fault is the cloud's.
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
