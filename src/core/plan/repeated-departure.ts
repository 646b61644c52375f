import { openHours } from "../limits/windows.ts";
import type { Policy } from "../policy/policy.ts";
import {
  between,
  formatRounded,
  hours,
  type Instant,
  type Millis,
  millis,
  plus,
} from "../time/time.ts";

/**
 * The machines that leave twice for one opening of the windows, given by how long before its end
 * they are launched: they would not live until the next opening. `fromMs` is undefined if that
 * concerns any launched while the windows are open.
 */
export interface RepeatedDeparture {
  readonly fromMs: Millis | undefined;
  /** Those launched later live until the next opening. 0 if none does. */
  readonly toMs: Millis;
}

/** Windows recur every week at the latest, apart from changes of the clock. */
const lookAheadMs: Millis = hours(9 * 24);

/** From which share on it is worth a word: with wide windows, there is always a small one. */
const leastShare = 0.5;

/**
 * Whether most of the machines that replace others while the windows are open have to leave again
 * before these shut, since their deadlines come before the next opening. The worst opening counts.
 */
export function repeatedDeparture(
  { windows, lifetime: { minMs, maxMs, reserveMs } }: Policy,
  at: Instant,
): RepeatedDeparture | undefined {
  if (windows.length === 0 || maxMs === undefined) return undefined;
  const livesMs = maxMs - reserveMs;
  const bounds = { startAt: at, endAt: plus(at, lookAheadMs) };
  const { spans } = openHours(windows, bounds);
  let worst: RepeatedDeparture | undefined;
  let worstShare = 0;
  for (const [index, span] of spans.entries()) {
    const next = spans[index + 1];
    // One that is cut off by the bounds may be longer than it looks.
    if (next === undefined || span.startAt === bounds.startAt) continue;
    const openMs = between(span.startAt, span.endAt);
    const fromMs = Math.min(openMs, livesMs);
    const toMs = Math.max(0, livesMs - between(span.endAt, next.startAt));
    const share = (fromMs - Math.max(minMs, toMs)) / fromMs;
    if (share < leastShare || share <= worstShare) continue;
    worstShare = share;
    worst = { fromMs: fromMs < openMs ? millis(fromMs) : undefined, toMs: millis(toMs) };
  }
  return worst;
}

/** Which nodes that are, and why. */
export function explainRepeated({ fromMs, toMs }: RepeatedDeparture): string {
  const launched = toMs > 0 ? beforeShut("more", toMs) : launchedFrom(fromMs);
  return `a node launched ${launched} leaves again before they shut, because they open again only after its deadline`;
}

function launchedFrom(fromMs: RepeatedDeparture["fromMs"]): string {
  return fromMs === undefined ? "while the windows are open" : beforeShut("less", fromMs);
}

function beforeShut(than: "more" | "less", spanMs: Millis): string {
  return `${than} than ${formatRounded(spanMs)} before the windows shut`;
}

/** What helps. */
export const repeatedCure =
  "open the windows longer or more often, or shorten lifetime.reserve; with lifetime.min such nodes leave at their deadlines instead";
