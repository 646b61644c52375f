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
 * machine in this boot: a plan for another one ends without acting, and the notice with it.
 */
export function departureOfNotice<D extends WithPhase & Pick<Departure, "cause" | "noticedAt">>(
  departures: readonly D[],
  cause: Cause,
  isOfMachine: (departure: D) => boolean,
): D | undefined {
  const live = departures.filter(isLive);
  const noticed = live.find(isNoticed);
  if (noticed !== undefined) return noticed;
  if (mayBeIgnored(cause)) return undefined;
  return live.find(isUnderWay) ?? live.find(isOfMachine);
}

/**
 * Whether a departure of another machine, or of an earlier boot, is about to end as such. A notice
 * written to it would be lost, and one beside it would act on the node together with it.
 */
export function endsAsAnother<D extends WithPhase & Pick<Departure, "cause" | "noticedAt">>(
  departure: D,
  isOfMachine: (departure: D) => boolean,
): boolean {
  if (!isLive(departure) || isOfMachine(departure)) return false;
  return isNoticed(departure) || isUnderWay(departure);
}
