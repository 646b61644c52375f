import type { Cause } from "../policy/action.ts";
import {
  type Departure,
  isLive,
  isNoticed,
  isUnderWay,
  mayBeIgnored,
  type WithPhase,
} from "./departure.ts";

/**
 * Selects the departure of a node that a notice applies to: one that a notice has created already,
 * otherwise one under way, otherwise the one that is not due yet. A cause that a policy may ignore
 * (rebalance, maintenance) does not change the latter two: undefined, it gets a departure of its
 * own, for which the policy decides. `isOfMachine` says whether a departure may be of the noticed
 * machine in this boot: any other ends as another machine's, and the notice with it, and it may be
 * long until its end can be recorded.
 */
export function departureOfNotice<D extends WithPhase & Pick<Departure, "cause" | "noticedAt">>(
  departures: readonly D[],
  cause: Cause,
  isOfMachine: (departure: D) => boolean,
): D | undefined {
  const live = departures.filter((one) => isLive(one) && isOfMachine(one));
  const noticed = live.find(isNoticed);
  if (noticed !== undefined) return noticed;
  return mayBeIgnored(cause) ? undefined : (live.find(isUnderWay) ?? live[0]);
}
