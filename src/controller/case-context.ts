import { type Departure, isNoticed } from "../core/departure.ts";
import type { NodeFacts } from "../core/node.ts";
import type { Policy } from "../core/policy.ts";
import type { Reason } from "../core/reason.ts";

/** What the parts of a case share: the departure as it is now, and a word into its ledger. */
export interface CaseContext {
  readonly departure: () => Departure;
  /** Its node as the watch has shown it last. */
  readonly node: () => NodeFacts | undefined;
  /** Writes what goes on inside the phase: status, timeline, log. */
  readonly tell: (reason: Reason, detail?: string) => Promise<void>;
  /** Calls back whenever the departure was seen anew; gives the way to stop it. */
  readonly onObserved: (listener: () => void) => () => void;
}

/** The machine is not ours to release: the cloud takes it, or the policy leaves it to others. */
export function isCloudsToTake(departure: Departure, policy: Policy): boolean {
  return isNoticed(departure) || policy.instance.release === "None";
}
