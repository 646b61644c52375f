import type { MachineState } from "../cluster/machine.ts";
import { existedAt } from "../cluster/machine-age.ts";
import { type Departure, isNoticed } from "../departure/departure.ts";
import type { PhaseResult } from "../departure/ledger.ts";
import type { Instant } from "../time/time.ts";

/**
 * Whether only the cloud can say what has ended a departure: its Node is gone, or has another boot.
 * A notice stands, whatever the cloud shows, unless it is only the kubelet's: a reboot that anybody
 * makes begins with the same shutdown.
 */
export function isInDoubt({ event, reason }: PhaseResult, departure: Departure): boolean {
  const isReplaced = event === "MachineReplaced" && reason === "MachineReplaced";
  const isCloudsWord = isNoticed(departure) && departure.cause !== "NodeShutdown";
  if (isCloudsWord || !(isReplaced || event === "NodeGone")) return false;
  return departure.node.providerID !== undefined && departure.createdAt !== undefined;
}

/**
 * The same end in the light of what the cloud says; undefined: it has not answered. A machine that
 * is gone was taken by the cloud; if the cloud shows that it runs, it has only been rebooted, or
 * somebody has deleted its Node.
 */
export function inTheLightOf<Result extends PhaseResult>(
  state: MachineState | undefined,
  found: Result,
  about: { readonly departure: Departure; readonly now: Instant },
): Result {
  if (!isSame(state, about)) return found;
  if (found.event === "MachineReplaced") return { ...found, reason: "MachineRebooted" };
  const detail = "its Node was deleted, and its machine still runs";
  return { ...found, event: "Cancelled", reason: "CancelledByPerson", detail };
}

/** False if it cannot be known, as when the cloud has made a machine of that name since. */
function isSame(
  state: MachineState | undefined,
  { departure, now }: { readonly departure: Departure; readonly now: Instant },
): boolean {
  const { createdAt } = departure;
  if (state?.kind !== "Present" || !state.running || createdAt === undefined) return false;
  const { bornAt, asOf } = state;
  return bornAt !== undefined && existedAt(createdAt, { bornAt, asOf }, now);
}
