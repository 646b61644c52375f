import type { Outcome } from "../../core/departure/departure.ts";
import { type Fields, isFields, textOf } from "../../core/json/json-field.ts";
import { formatInstant, hours, type Instant, instant } from "../../core/time/time.ts";
import { outcomes } from "../stream.ts";
import {
  type NoticeFigures,
  type NoticeQuestion,
  noticeFiguresIn,
  noticeQueries,
} from "./notice-figures.ts";

/** What `/api/outcomes` answers. */
export interface CountedOutcomes {
  /** The newest first. */
  readonly days: readonly CountedDay[];
  /** Of all these days. */
  readonly notices: NoticeFigures;
}

/** One day's ends (UTC) as a counter has them. */
export interface CountedDay {
  /** As in `2026-11-20`. */
  readonly day: string;
  readonly policies: readonly CountedPolicy[];
  /** Of all policies: the counter does not tell them apart. */
  readonly podsForced: number;
}

export interface CountedPolicy {
  readonly policy: string;
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
}

const dayMs = hours(24);
const daysShown = 30;

/** What Prometheus is asked, each by `/api/v1/query_range`. */
export interface RangeQuestion {
  readonly what: "Outcomes" | "PodsForced" | NoticeQuestion;
  readonly query: string;
  readonly startAt: Instant;
  readonly endAt: Instant;
  readonly stepSeconds: number;
}

/** Each day at its end, of today what there is; and the notices of all these days. */
export function outcomeQuestions(now: Instant): readonly RangeQuestion[] {
  const today = instant(Math.floor(now / dayMs) * dayMs);
  const sinceSeconds = Math.max(60, Math.floor((now - today) / 1000));
  const first = instant(today - (daysShown - 2) * dayMs);
  const stepSeconds = dayMs / 1000;
  const counts = [
    { what: "Outcomes", metric: "lastcall_departures_total", by: "policy, outcome" } as const,
    { what: "PodsForced", metric: "lastcall_pods_forced_total", by: "" } as const,
  ].flatMap(({ what, metric, by }) =>
    [
      { window: "1d", startAt: first, endAt: today },
      { window: `${sinceSeconds}s`, startAt: now, endAt: now },
    ].map(({ window, ...span }) => ({
      ...{ what, ...span, stepSeconds },
      query: `sum by (${by}) (${countedIn(metric, window)})`,
    })),
  );
  const notices = noticeQueries(daysShown).map(({ query, ...what }) => {
    return { what, query, startAt: now, endAt: now, stepSeconds };
  });
  return [...counts, ...notices];
}

/**
 * A counter that was not there before has counted all that it shows within the window, which
 * `increase` does not see: it begins with the first value that was scraped.
 */
function countedIn(metric: string, window: string): string {
  const isNew = `last_over_time(${metric}[${window}]) unless last_over_time(${metric}[1d] offset ${window})`;
  return `${isNew} or increase(${metric}[${window}])`;
}

interface Answered {
  readonly what: RangeQuestion["what"];
  readonly series: readonly CountedSeries[];
}

/** What was answered, question by question. */
export function countedOutcomes(answers: readonly Answered[]): CountedOutcomes {
  const notices = answers.flatMap(({ what, series }) =>
    typeof what === "string" ? [] : [{ ...what, value: series[0]?.points.at(-1)?.[1] }],
  );
  return { days: countedDays(answers), notices: noticeFiguresIn(notices) };
}

function countedDays(answers: readonly Answered[]): readonly CountedDay[] {
  const days = new Map<string, Map<string, Partial<Record<Outcome, number>>>>();
  const forced = new Map<string, number>();
  for (const { what, series } of answers) {
    if (typeof what !== "string") continue;
    for (const { labels, points } of series) {
      for (const [at, value] of points) {
        // `increase` is between two scrapes what it was on the whole.
        const count = Math.round(value);
        const day = formatInstant(instant(at - 1)).slice(0, 10);
        if (count <= 0) continue;
        if (what === "PodsForced") {
          forced.set(day, (forced.get(day) ?? 0) + count);
          continue;
        }
        const outcome = outcomes.find((one) => one === textOf(labels.outcome));
        if (outcome === undefined) continue;
        const policies = days.get(day) ?? new Map<string, Partial<Record<Outcome, number>>>();
        const policy = textOf(labels.policy) ?? "";
        const before = policies.get(policy) ?? {};
        policies.set(policy, { ...before, [outcome]: (before[outcome] ?? 0) + count });
        days.set(day, policies);
      }
    }
  }
  return [...new Set([...days.keys(), ...forced.keys()])]
    .toSorted((a, b) => (a < b ? 1 : -1))
    .map((day) => ({
      day,
      policies: [...(days.get(day) ?? [])]
        .map(([policy, outcomes]) => ({ policy, outcomes }))
        .toSorted((a, b) => (a.policy < b.policy ? -1 : 1)),
      podsForced: forced.get(day) ?? 0,
    }));
}

export interface CountedSeries {
  readonly labels: Fields;
  readonly points: readonly (readonly [at: number, value: number])[];
}

/** The series in an answer of Prometheus; undefined for what is none, or an error of its own. */
export function seriesIn(answer: unknown): readonly CountedSeries[] | undefined {
  const data = isFields(answer) && answer.status === "success" ? answer.data : undefined;
  const result = isFields(data) && data.resultType === "matrix" ? data.result : undefined;
  if (!Array.isArray(result)) return undefined;
  return result.flatMap((one: unknown): CountedSeries[] => {
    if (!isFields(one) || !isFields(one.metric) || !Array.isArray(one.values)) return [];
    const points = one.values.flatMap((point: unknown): (readonly [number, number])[] => {
      const [at, value] = Array.isArray(point) ? point : [];
      const isPoint = typeof at === "number" && Number.isFinite(Number(value));
      return isPoint ? [[at * 1000, Number(value)]] : [];
    });
    return [{ labels: one.metric, points }];
  });
}
