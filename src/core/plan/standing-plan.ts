import { nextOpen, type OpenTime, openTime } from "../limits/gate.ts";
import { openHours } from "../limits/windows.ts";
import { instant, later } from "../time/time.ts";
import type { PlanCandidates, PlannedDeparture } from "./fleet-plan.ts";
import { reasonOf } from "./job-classes.ts";
import { departureOf, type Job } from "./planned-departure.ts";

/**
 * The instants as they stand, where the new ones are no better: people have read them. A move that
 * improved nothing could also be followed by the move back, in every pass: several rules decide
 * about instants, and some of them judge by the instants that others have set.
 */
export function unlessBetter(
  fresh: readonly PlannedDeparture[],
  jobs: readonly Job[],
  input: PlanCandidates,
): readonly PlannedDeparture[] {
  const { at, policy } = input;
  const lastAt = fresh.reduce((last, { movedFrom = at }) => later(last, movedFrom), at);
  if (fresh.every(({ movedFrom }) => movedFrom === undefined)) return fresh;
  const hours = openHours(policy.windows, { startAt: at, endAt: instant(lastAt + 1) });
  const open = openTime(hours.spans);
  const jobOf = new Map(jobs.map((job) => [job.candidate.node.uid, job]));
  const standing: PlannedDeparture[] = [];
  for (const one of fresh) {
    const job = one.movedFrom === undefined ? undefined : jobOf.get(one.node.uid);
    if (job === undefined) {
      standing.push(one);
      continue;
    }
    const { keptAt = 0 } = job;
    if (keptAt <= at || keptAt < job.release || !isAllowed(keptAt, { job, open })) return fresh;
    standing.push(departureOf(job, { at: keptAt, reason: reasonOf(job, keptAt, policy), hours }));
  }
  return isBetter(meritOf(fresh, input), meritOf(standing, input)) ? fresh : standing;
}

/** After its deadline, a node that had no open window before it leaves at any hour. */
function isAllowed(
  at: number,
  { job, open }: { readonly job: Job; readonly open: OpenTime },
): boolean {
  if (nextOpen(open, at) === at) return true;
  return at >= job.deadline && nextOpen(open, job.release) > job.deadline;
}

/**
 * What a plan is judged by: how many nodes outlive their lifetime, how many leave after their
 * deadline, and then its gaps, the smallest first.
 */
type Merit = readonly number[];

function meritOf(
  departures: readonly PlannedDeparture[],
  { policy, newestStart, requested }: PlanCandidates,
): Merit {
  const { mode, minMs } = policy.spacing;
  const departAts = departures.map(({ departAt }): number => departAt);
  const starts = newestStart === undefined ? [] : [newestStart.at];
  const sorted = Float64Array.from([...departAts, ...requested, ...starts]).sort();
  const gaps = sorted.subarray(1).map((at, place) => at - (sorted[place] as number));
  const outlived = departures.filter(({ departAt, endsAt }) => departAt > endsAt).length;
  const late = departures.filter(({ departAt, deadlineAt }) => departAt > deadlineAt).length;
  const enough = mode === "Late" ? minMs : Number.POSITIVE_INFINITY;
  return [-outlived, -late, ...gaps.map((gap) => Math.min(gap, enough)).sort()];
}

function isBetter(one: Merit, other: Merit): boolean {
  const place = one.findIndex((figure, at) => figure !== other[at]);
  return place >= 0 && (one[place] as number) > (other[place] as number);
}
