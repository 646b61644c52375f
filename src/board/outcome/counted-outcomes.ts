import { compareNames } from "../../core/cluster/name-order.ts";
import type { Outcome } from "../../core/departure/departure.ts";
import { type Fields, isFields, textOf } from "../../core/json/json-field.ts";
import { formatInstant, hours, type Instant, instant, type Millis } from "../../core/time/time.ts";
import { outcomes, type PastDeparture } from "../stream.ts";

/** The response of `/api/outcomes`. */
export interface CountedOutcomes {
  /** The newest first. */
  readonly days: readonly CountedDay[];
  /** Over all these days. */
  readonly notices: NoticeFigures;
}

/** The outcomes of one day (UTC) according to the Prometheus counter. */
export interface CountedDay {
  /** As in `2026-11-20`. */
  readonly day: string;
  readonly policies: readonly CountedPolicy[];
  /** Over all policies: the counter does not distinguish them. */
  readonly podsForced: number;
}

export interface CountedPolicy {
  readonly policy: string;
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
}

const dayMs = hours(24);
const daysShown = 30;

/** A query to Prometheus, by `/api/v1/query_range`. */
export interface RangeQuestion {
  readonly what: "Outcomes" | "PodsForced" | NoticeQuestion;
  readonly query: string;
  readonly startAt: Instant;
  readonly endAt: Instant;
  readonly stepSeconds: number;
}

/** Queries each day at its end, today so far, and the notices of all these days. */
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
 * A counter that did not exist before has counted everything that it shows within the window, which
 * `increase` misses: it starts with the first value that was scraped.
 */
function countedIn(metric: string, window: string): string {
  const isNew = `last_over_time(${metric}[${window}]) unless last_over_time(${metric}[1d] offset ${window})`;
  return `${isNew} or increase(${metric}[${window}])`;
}

interface Answered {
  readonly what: RangeQuestion["what"];
  readonly series: readonly CountedSeries[];
}

/** The responses, query by query. */
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
        // `increase` extrapolates between two scrapes.
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
        .toSorted((a, b) => compareNames(a.policy, b.policy)),
      podsForced: forced.get(day) ?? 0,
    }));
}

export interface CountedSeries {
  readonly labels: Fields;
  readonly points: readonly (readonly [at: number, value: number])[];
}

/** The series of a response of Prometheus; undefined for anything else, or an error of its own. */
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

interface NoticeFigures {
  /** From the notice until the node was cordoned; null if there was none. */
  readonly toCordon: NoticeFigure | null;
  /** The time that was left of the notice when the node was empty. */
  readonly timeLeft: NoticeFigure | null;
}

export interface NoticeFigure {
  readonly notices: number;
  readonly medianMs: number;
  /** 95 % of the notices were at least as good. */
  readonly worstMs: number;
}

/** For a cordon, late is worse; for the time that was left, little is worse. */
const worstShares = { toCordon: 0.95, timeLeft: 0.05 } as const;

/** From the departures themselves. */
export function noticeFigures(
  past: readonly Pick<PastDeparture, "noticeToCordonMs" | "timeLeftMs">[],
): NoticeFigures {
  const known = (spans: readonly (Millis | null)[]) => spans.filter((ms) => ms !== null);
  return {
    toCordon: figureOf(known(past.map((one) => one.noticeToCordonMs)), worstShares.toCordon),
    timeLeft: figureOf(known(past.map((one) => one.timeLeftMs)), worstShares.timeLeft),
  };
}

function figureOf(spans: readonly number[], worst: number): NoticeFigure | null {
  const sorted = spans.toSorted((a, b) => a - b);
  const rank = (share: number): number | undefined => sorted[Math.ceil(share * sorted.length) - 1];
  const [medianMs, worstMs] = [rank(0.5), rank(worst)];
  if (medianMs === undefined || worstMs === undefined) return null;
  return { notices: sorted.length, medianMs, worstMs };
}

const metrics = {
  toCordon: "lastcall_notice_to_cordon_seconds",
  timeLeft: "lastcall_deadline_left_seconds",
} as const;

interface NoticeQuestion {
  readonly figure: keyof NoticeFigures;
  readonly part: keyof NoticeFigure;
}

/** The queries to Prometheus at the end of this many days. */
function noticeQueries(days: number): readonly (NoticeQuestion & { query: string })[] {
  return (["toCordon", "timeLeft"] as const).flatMap((figure) => {
    const metric = metrics[figure];
    // A process exports its histograms from its start, with zero: `increase` misses no notice.
    const buckets = `sum by (le) (increase(${metric}_bucket[${days}d]))`;
    const quantile = (share: number): string => `1000 * histogram_quantile(${share}, ${buckets})`;
    return [
      { figure, part: "notices", query: `sum(increase(${metric}_count[${days}d]))` },
      { figure, part: "medianMs", query: quantile(0.5) },
      { figure, part: "worstMs", query: quantile(worstShares[figure]) },
    ];
  });
}

/** The responses; a query without a response has no value. */
function noticeFiguresIn(
  answers: readonly (NoticeQuestion & { readonly value: number | undefined })[],
): NoticeFigures {
  const figure = (name: keyof NoticeFigures): NoticeFigure | null => {
    const value = (part: keyof NoticeFigure): number | undefined =>
      answers.find((answer) => answer.figure === name && answer.part === part)?.value;
    const notices = Math.round(value("notices") ?? 0);
    const [medianMs, worstMs] = [value("medianMs"), value("worstMs")];
    if (notices === 0 || medianMs === undefined || worstMs === undefined) return null;
    return { notices, medianMs, worstMs };
  };
  return { toCordon: figure("toCordon"), timeLeft: figure("timeLeft") };
}
