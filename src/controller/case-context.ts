import type { NodeFacts } from "../core/cluster/node.ts";
import { type Departure, isNoticed } from "../core/departure/departure.ts";
import { reactionTo } from "../core/notice/reaction.ts";
import type { Policy } from "../core/policy/policy.ts";
import type { Reason } from "../core/reason/reason.ts";

/** What the parts of a case share: the departure as it is now, and a word into its ledger. */
export interface CaseContext {
  readonly departure: () => Departure;
  /** Its node as the watch has shown it last. */
  readonly node: () => NodeFacts | undefined;
  /** Writes what goes on inside the phase: status, timeline, log. */
  readonly tell: (reason: Reason, detail?: string) => Promise<void>;
  /** Calls back whenever the departure was seen again; gives the way to stop it. */
  readonly onObserved: (listener: () => void) => () => void;
}

/**
 * The machine is not ours to release: the policy leaves it to others, or the cloud takes it, where
 * the policy does not want it let go before, or that could not be done.
 */
export function isCloudsToTake(departure: Departure, policy: Policy): boolean {
  if (policy.instance.release === "None") return true;
  if (!isNoticed(departure)) return false;
  const { phase, reason } = departure.status;
  const hasFailed = phase === "Releasing" && reason === "ReleaseFailed";
  return hasFailed || reactionTo(departure, policy) !== "Release";
}
