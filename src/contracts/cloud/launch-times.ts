import type { Instant } from "../../core/time/time.ts";
import type { LastcallError } from "../../errors.ts";

/**
 * When machines were launched, as the cloud reports it: a Node object may be older than the machine
 * behind it. One implementation per cloud, and the model cloud; contract suite:
 * `test/contract/launch-times.contract.ts`.
 */
export interface LaunchTimes {
  /**
   * The launch times of the machines that stand in these places now, in a few requests for all of
   * them. A machine that the cloud does not have, or of another cloud, is missing from the answer.
   * Failed requests are listed in `faults`, next to the answers. Rejects only with the signal's
   * reason.
   */
  launchTimesOf(providerIDs: readonly string[], signal: AbortSignal): Promise<LaunchTimeReading>;
}

export interface LaunchTimeReading {
  /** By providerID. */
  readonly bornAt: ReadonlyMap<string, Instant>;
  readonly faults: readonly LastcallError[];
}
