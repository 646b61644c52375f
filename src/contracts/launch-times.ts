import type { Instant } from "../core/time/time.ts";
import type { LastcallError } from "../errors.ts";

/**
 * When machines were born, by the cloud's word: a Node object may be older than the machine behind
 * it. One implementation a cloud and the model cloud; contract suite:
 * `test/contract/launch-times.contract.ts`.
 */
export interface LaunchTimes {
  /**
   * The launch times of the machines that stand in these places now, in a few requests for all of
   * them. A machine that the cloud does not have, or of another cloud, is missing from the answer.
   * What could not be asked is told in `faults`, beside what could. Rejects only with the signal's
   * reason.
   */
  launchTimesOf(providerIDs: readonly string[], signal: AbortSignal): Promise<LaunchTimeReading>;
}

export interface LaunchTimeReading {
  /** By providerID. */
  readonly bornAt: ReadonlyMap<string, Instant>;
  readonly faults: readonly LastcallError[];
}
