import { keptAway, type OpenTime } from "../limits/open-time.ts";
import { earlyInstants, type SpacingProblem, spacingOf } from "./spacing/spacing.ts";

export interface AroundRequests {
  /** The gap that the planned departures keep from each other. */
  readonly gap: number;
  /** When the departures that a person has asked for are to start. */
  readonly requested: readonly number[];
}

/**
 * The open time that is left when planned departures keep away from requested ones: by the gap, or
 * where that cannot be by as much as can. A person's word comes before the plan and may come at any
 * instant, so that it never costs the planned ones a gap of their own.
 */
export function clearOfRequests(problem: SpacingProblem, around: AroundRequests): OpenTime {
  const { gap, requested } = around;
  if (requested.length === 0 || problem.jobs.length === 0) return problem.open;
  const walls = [...requested].sort((a, b) => a - b);
  const clearBy = (distance: number): OpenTime => keptAway(problem.open, walls, distance);
  const canKeep = (distance: number): boolean =>
    earlyInstants(spacingOf({ ...problem, open: clearBy(distance) }), gap) !== undefined;
  if (canKeep(gap)) return clearBy(gap);
  let kept = 0;
  let lost = gap;
  while (lost - kept > 1) {
    const distance = Math.floor((kept + lost) / 2);
    if (canKeep(distance)) kept = distance;
    else lost = distance;
  }
  return clearBy(kept);
}
