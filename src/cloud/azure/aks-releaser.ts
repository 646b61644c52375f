import type {
  InstanceReleaser,
  MachineState,
  Releasability,
  ReleaseQuestion,
  ReleaseRequest,
  ReleaseResult,
} from "../../contracts/cloud/instances.ts";
import { fieldsOf, listOf } from "../../core/json/json-field.ts";
import { isLastcallError, LastcallError } from "../../errors.ts";
import {
  type LeavingMachine,
  type ReleaseBounds,
  type ReleaseLoopOptions,
  releaseByLooking,
  type Standing,
} from "../release/release-loop.ts";
import type { AksPools } from "./aks-pools.ts";
import { type ArmClient, awaitArmOperation } from "./arm-client.ts";
import {
  type AzureMachine,
  findMachineRef,
  type MachineRef,
  readMachine,
  readPermissionOf,
} from "./azure-machine.ts";
import { type AzureRelease, computeVersion, type ReleaseAct, releaseAct } from "./release-act.ts";

interface AksReleaserOptions extends ReleaseLoopOptions {
  readonly client: ArmClient;
  readonly pools: AksPools;
  /** Whether DeleteInstance may go past AKS. */
  readonly pastAks: AzureRelease["pastAks"];
}

/**
 * Releases virtual machines of Azure, by their node pool of AKS. An abort rejects with the signal's
 * reason and leaves Azure to finish what was asked; the same request takes it up again.
 */
export class AksReleaser implements InstanceReleaser {
  readonly #options: AksReleaserOptions;

  constructor(options: AksReleaserOptions) {
    this.#options = options;
  }

  async describe(providerID: string, signal: AbortSignal): Promise<MachineState> {
    const machine = await this.#look(machineRefOf(providerID), signal);
    if (machine === undefined) return { kind: "Absent" };
    const { vmId: id, createdAt: bornAt, stage } = machine;
    return { kind: "Present", id, bornAt, running: stage === "Running" };
  }

  async check(question: ReleaseQuestion, signal: AbortSignal): Promise<Releasability> {
    const ref = machineRefOf(question.providerID);
    const machine = await this.#look(ref, signal);
    if (machine === undefined) return impossible(`Azure has no virtual machine ${ref.id}`);
    // It is being deleted already, so that no permission is needed.
    if (machine.stage !== "Running") return { kind: "Possible", permission: "Unknown" };
    const act = await this.#actFor({ ref, machine, mode: question.mode }, signal);
    if (act.kind === "Refused") return impossible(act.problem);
    const { permission: action } = act.call;
    const { client } = this.#options;
    const permission = await permissionOn(act.scope, { action, client }, signal);
    if (permission !== "Missing") return { kind: "Possible", permission };
    const place = `on ${act.scope}, grant it (docs/cloud/azure.md#permissions)`;
    return impossible(`the permission ${action} is not granted ${place}`);
  }

  async release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult> {
    const ref = machineRefOf(request.providerID);
    const { machineId, mode, lastLook } = request;
    const machine: LeavingMachine<AzureMachine> = {
      look: (until) => this.#look(ref, until),
      standing: (seen) => (seen.vmId === machineId ? standings[seen.stage] : "Replaced"),
      act: (seen, bounds) => this.#act({ ref, machine: seen, mode }, bounds),
      stillThere: (seen) => stillThere(ref, seen),
    };
    return releaseByLooking({ machine, lastLook }, this.#options, signal);
  }

  async #look(ref: MachineRef, signal: AbortSignal): Promise<AzureMachine | undefined> {
    const action = `read the virtual machine ${ref.id}`;
    const call = {
      method: "GET",
      path: ref.id,
      apiVersion: computeVersion,
      query: { $expand: "instanceView" },
      action,
      permission: readPermissionOf(ref),
    } as const;
    const answer = await this.#options.client.sendPatiently(call, signal);
    if (answer.kind === "NotFound") return undefined;
    const machine = readMachine(answer.body);
    if (machine !== undefined) return machine;
    const found = "found an answer without vmId";
    throw new LastcallError("CLOUD_UNREACHABLE", `Cannot ${action}: ${found}, expected a machine`);
  }

  async #actFor(
    target: Pick<AzureRelease, "ref" | "machine" | "mode">,
    signal: AbortSignal,
  ): Promise<ReleaseAct> {
    const { pools, pastAks } = this.#options;
    const { ref, machine, mode } = target;
    // Past AKS its node pool is asked nothing.
    const isPast = mode === "DeleteInstance" && pastAks === "Allowed";
    const pool = isPast ? undefined : await pools.poolOf({ ref, machine }, signal);
    return releaseAct({ ...target, pool, pastAks });
  }

  async #act(
    target: Pick<AzureRelease, "ref" | "machine" | "mode">,
    bounds: ReleaseBounds,
  ): Promise<void> {
    const { client, clock, rng } = this.#options;
    const act = await this.#actFor(target, bounds.signal);
    if (act.kind === "Refused") {
      throw new LastcallError("CLOUD_REFUSED", `Cannot release a machine: ${act.problem}`);
    }
    const started = await client.send(act.call, bounds.signal);
    await awaitArmOperation(started, { client, clock, rng, purpose: act.call }, bounds);
  }
}

const standings = {
  Running: "Staying",
  Leaving: "Leaving",
  Stopped: "Gone",
} as const satisfies Record<AzureMachine["stage"], Standing>;

/** Throws CLOUD_REFUSED for what is no virtual machine's providerID. */
function machineRefOf(providerID: string): MachineRef {
  const ref = findMachineRef(providerID);
  if (ref !== undefined) return ref;
  throw new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release a machine: found the providerID ${providerID}, expected azure:///subscriptions/…/virtualMachines/…`,
  );
}

function stillThere({ id }: MachineRef, { state }: AzureMachine): LastcallError {
  return new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release ${id}: found it ${state} after the whole wait, expected it gone (az aks operation show-latest tells what AKS does)`,
    { retryable: true },
  );
}

function impossible(problem: string): Releasability {
  return { kind: "Impossible", problem };
}

/**
 * Whether we may do `action` on a resource, by the list of permissions that Azure gives everybody
 * of their own. `Unknown` where the list itself is refused.
 */
async function permissionOn(
  scope: string,
  { action, client }: { readonly action: string; readonly client: ArmClient },
  signal: AbortSignal,
): Promise<"Granted" | "Missing" | "Unknown"> {
  const call = {
    method: "GET",
    path: `${scope}/providers/Microsoft.Authorization/permissions`,
    apiVersion: "2022-04-01",
    action: `ask whether ${action} is granted`,
    permission: "Microsoft.Authorization/permissions/read",
  } as const;
  const answer = await client.sendPatiently(call, signal).catch(unlessRefused);
  if (answer?.kind !== "Found" || !Array.isArray(answer.body.value)) return "Unknown";
  const isGranted = answer.body.value
    .map(fieldsOf)
    .some(({ actions, notActions }) => names(actions, action) && !names(notActions, action));
  return isGranted ? "Granted" : "Missing";
}

/** Actions are compared without regard to case, and `*` stands for anything. */
function names(patterns: unknown, action: string): boolean {
  return listOf(patterns).some((pattern) => {
    const source = String(pattern).split("*").map(escaped).join(".*");
    return new RegExp(`^${source}$`, "i").test(action);
  });
}

function unlessRefused(error: unknown): undefined {
  const code = isLastcallError(error) ? error.code : undefined;
  if (code !== "CLOUD_RIGHT_MISSING" && code !== "CLOUD_REFUSED") throw error;
  return undefined;
}

/** `RegExp.escape` is newer than the oldest Node that is supported. */
function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
