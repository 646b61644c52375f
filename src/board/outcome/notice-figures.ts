/** How much of its notices a cluster has used: by its departures, and by its metrics. */
import type { Millis } from "../../core/time/time.ts";
import type { PastDeparture } from "../stream.ts";

export interface NoticeFigures {
  /** From the notice until the node was cordoned; null where there was none. */
  readonly toCordon: NoticeFigure | null;
  /** What was left of the notice when the node was empty. */
  readonly timeLeft: NoticeFigure | null;
}

export interface NoticeFigure {
  readonly notices: number;
  readonly medianMs: number;
  /** 95 % of the notices were at least as good. */
  readonly worstMs: number;
}

/** Late is worse for a cordon, little is worse of what was left. */
const worstShares = { toCordon: 0.95, timeLeft: 0.05 } as const;

/** Of the departures themselves. */
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

export interface NoticeQuestion {
  readonly figure: keyof NoticeFigures;
  readonly part: keyof NoticeFigure;
}

/** What Prometheus is asked at the end of so many days. */
export function noticeQueries(days: number): readonly (NoticeQuestion & { query: string })[] {
  return (["toCordon", "timeLeft"] as const).flatMap((figure) => {
    const metric = metrics[figure];
    // A process shows its histograms from its start, at nought: `increase` misses no notice.
    const buckets = `sum by (le) (increase(${metric}_bucket[${days}d]))`;
    const quantile = (share: number): string => `1000 * histogram_quantile(${share}, ${buckets})`;
    return [
      { figure, part: "notices", query: `sum(increase(${metric}_count[${days}d]))` },
      { figure, part: "medianMs", query: quantile(0.5) },
      { figure, part: "worstMs", query: quantile(worstShares[figure]) },
    ];
  });
}

/** What was answered; of a question without an answer there is no value. */
export function noticeFiguresIn(
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
