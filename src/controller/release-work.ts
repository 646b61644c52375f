import type { Departure } from "../core/departure/departure.ts";
import type { PhaseResult } from "../core/departure/ledger.ts";
import type { ReleaseMode } from "../core/policy/policy.ts";
import type { Executor } from "./executor.ts";
import type { StatusWriter } from "./status-writer.ts";

export interface ReleaseTools {
  readonly executor: Executor;
  readonly ledger: StatusWriter;
  readonly mode: Exclude<ReleaseMode, "None">;
  /** Looks once more at the node and for pods, just before the machine is let go. */
  readonly lastLook: () => Promise<"Clear" | "Waited" | PhaseResult>;
  /** Told when the machine is gone, and its Node is not. */
  readonly onGone: () => Promise<void>;
}

/**
 * Lets the machine go, then takes its Node object away; in this order, never the other way round.
 * The machine's id is written into the ledger before the release is asked for, and the first one that stands
 * there counts: whoever tries again, after a crash or only after a fault, tells by it the machine that was
 * meant from one recreated under its name.
 */
export async function releaseMachine(
  departure: Departure,
  tools: ReleaseTools,
  signal: AbortSignal,
): Promise<PhaseResult> {
  const { executor, ledger } = tools;
  const providerID = departure.node.providerID;
  if (providerID !== undefined) {
    const { machine } = ledger.newest(departure).status;
    const found =
      machine?.id ?? (await executor.machineId({ providerID, mode: tools.mode }, signal));
    if (found !== undefined) {
      const written = await ledger.write(departure, ({ status }) =>
        status.machine === undefined ? { ...status, machine: { id: found } } : undefined,
      );
      const machineId = written?.status.machine?.id ?? found;
      const kept = await letGo(departure, { ...tools, machineId }, signal);
      if (kept !== undefined) return kept;
    }
  }
  await executor.removeNode(departure);
  return { event: "Released", reason: "Released" };
}

/** Gives what keeps the machine instead. */
async function letGo(
  departure: Departure,
  { executor, mode, machineId, lastLook, onGone }: ReleaseTools & { readonly machineId: string },
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  let kept: PhaseResult | undefined;
  const mayGo = async () => {
    const found = await lastLook();
    if (typeof found === "string") return found;
    kept = found;
    return "Keep";
  };
  await executor.release(departure, { mode, machineId, lastLook: mayGo }, signal);
  if (kept === undefined) await onGone();
  return kept;
}
