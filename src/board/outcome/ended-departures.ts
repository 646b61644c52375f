import {
  type Departure,
  type DrainCounts,
  isLive,
  policyNameOf,
} from "../../core/departure/departure.ts";
import {
  fieldsOf,
  isFields,
  listOf,
  numberOf,
  oneOf,
  parseJson,
  textOf,
} from "../../core/json/json-field.ts";
import { causes } from "../../core/policy/action.ts";
import { inEnglish, type Sentence } from "../../core/reason/english.ts";
import { reasons } from "../../core/reason/reason.ts";
import {
  between,
  formatInstant,
  type Instant,
  instant,
  type Millis,
  millis,
} from "../../core/time/time.ts";
import { podCounts } from "../board-row.ts";
import {
  lossKinds,
  newestFirst,
  type OutcomeDay,
  outcomes,
  type PastDeparture,
  type PodCounts,
  type PodLoss,
} from "../stream.ts";

/** The outcome of a departure; undefined while it is live. */
export function pastDeparture(departure: Departure): PastDeparture | undefined {
  if (isLive(departure)) return undefined;
  const { uid: id, name, node, cause, status } = departure;
  const policy = policyNameOf(departure) ?? null;
  const endedAt = status.endedAt ?? status.timeline.at(-1)?.at ?? departure.createdAt;
  if (endedAt === undefined) return undefined;
  return {
    ...{ id, name, node: node.name, nodeUid: node.uid, policy, cause },
    outcome: status.outcome ?? "Failed",
    reason: status.reason ?? null,
    explain: endSentence(departure),
    departAt: departure.departAt ?? null,
    deadlineAt: departure.deadlineAt ?? null,
    noticedAt: departure.noticedAt ?? null,
    startedAt: status.startedAt ?? null,
    endedAt,
    noticeToCordonMs: spanTo(departure.noticedAt, stepAt(departure, "Draining")),
    timeLeftMs: timeLeft(departure),
    pods: podCounts(status.drain),
    losses: lossesOf(departure),
  };
}

/**
 * The sentence about the end of a departure, wherever it is shown. For a machine that the cloud
 * terminated, the status only says that its Node was gone; what people ask is how far its drain had
 * come by then.
 */
export function endSentence({ node, status }: Departure): string {
  const { outcome, drain, message = "" } = status;
  if ((outcome !== "Preempted" && outcome !== "Expired") || drain === undefined) return message;
  return `${inEnglish([{ says: "drain.Gone", node: node.name }, drainedBefore(drain)])}.`;
}

/** How much of the drain was done. Pods that were killed do not count as drained. */
function drainedBefore({ left, total: pods, killed = 0 }: DrainCounts): Sentence {
  const drained = pods - killed;
  if (pods === 0) return { says: "drain.HadNoPods" };
  if (left > 0 && killed > 0) return { says: "drain.KilledAndLeft", killed, left, pods };
  if (left === pods) return { says: "drain.AllLeft", pods };
  if (left > 0) return { says: "drain.SomeLeft", left, pods };
  if (killed === 0) return { says: "drain.AllDrained", pods };
  if (drained === 0) return { says: "drain.AllKilled", pods };
  return { says: "drain.SomeKilled", killed, drained, pods };
}

function stepAt({ status }: Departure, step: string): Instant | undefined {
  return status.timeline.find((entry) => entry.step === step)?.at;
}

function spanTo(from: Instant | undefined, to: Instant | undefined): Millis | null {
  return from === undefined || to === undefined || to < from ? null : between(from, to);
}

/** Only for a notice: a plan's own deadline leaves hours. */
function timeLeft(departure: Departure): Millis | null {
  const { noticedAt, deadlineAt } = departure;
  const emptyAt = stepAt(departure, "Releasing");
  if (noticedAt === undefined || deadlineAt === undefined || emptyAt === undefined) return null;
  return between(emptyAt, deadlineAt);
}

function lossesOf({ status }: Departure): readonly PodLoss[] {
  const { notClean = [], forcedPods = [] } = status.drain ?? {};
  return [
    ...notClean.map(({ namespace, name, outcome, rule = null }) => ({
      ...{ pod: `${namespace}/${name}`, what: outcome, why: rule },
    })),
    ...forcedPods.map(({ namespace, name, reason }) => ({
      ...{ pod: `${namespace}/${name}`, what: "Forced" as const, why: reason },
    })),
  ];
}

/** The most ended departures that are shown one by one; the days count all of them. */
const mostShown = 500;

/**
 * Departures that have ended, each counted once, however often it is seen: all of them by day and
 * policy, the newest one by one.
 */
export class EndedDepartures {
  readonly #ids = new Set<string>();
  readonly #days = new Map<string, OutcomeDay>();
  readonly #onNew: (past: PastDeparture) => void;
  #newest: PastDeparture[] = [];

  /** `known` are those of a history; for any other, the listener is called once. */
  constructor(
    known: readonly PastDeparture[] = [],
    onNew: (past: PastDeparture) => void = () => {},
  ) {
    this.#onNew = () => {};
    for (const past of known) this.add(past);
    this.#onNew = onNew;
  }

  /** Returns false for a departure that is already known, or that made no node leave. */
  add(past: PastDeparture): boolean {
    if (this.#ids.has(past.id) || wasDropped(past)) return false;
    this.#ids.add(past.id);
    this.#count(past);
    this.#onNew(past);
    this.#newest.push(past);
    // Sorted only from time to time: a file may have a hundred thousand.
    if (this.#newest.length >= 2 * mostShown) this.#newest = [...this.newest()];
    return true;
  }

  /** Newest first. */
  newest(): readonly PastDeparture[] {
    return this.#newest.toSorted(newestFirst).slice(0, mostShown);
  }

  /** Newest day first. */
  days(): readonly OutcomeDay[] {
    return [...this.#days].sort(([a], [b]) => (a < b ? 1 : -1)).map(([, day]) => day);
  }

  #count({ endedAt, policy, outcome, pods }: PastDeparture): void {
    const day = formatInstant(endedAt).slice(0, 10);
    const key = `${day} ${policy ?? ""}`;
    const before = this.#days.get(key) ?? newDay(day, policy);
    const { outcomes, podsCut, podsForced, podsLost } = before;
    this.#days.set(key, {
      ...before,
      outcomes: { ...outcomes, [outcome]: (outcomes[outcome] ?? 0) + 1 },
      podsCut: podsCut + (pods?.cut ?? 0),
      podsForced: podsForced + (pods?.forced ?? 0),
      podsLost: podsLost + (pods?.killed ?? 0) + (pods?.leftBehind ?? 0),
    });
  }
}

/**
 * The plan dropped it before it started, for example because a user's own departure came first:
 * nothing has departed, and nothing was cancelled.
 */
function wasDropped({ outcome, reason, startedAt }: PastDeparture): boolean {
  return outcome === "Cancelled" && reason === "PlanChanged" && startedAt === null;
}

function newDay(day: string, policy: string | null): OutcomeDay {
  return { day, policy, outcomes: {}, podsCut: 0, podsLost: 0, podsForced: 0 };
}

export interface KeptHistory {
  readonly departures: readonly PastDeparture[];
  /** Lines that were truncated when they were written. */
  readonly cut: number;
  /** Lines that no board wrote. */
  readonly foreign: number;
}

/**
 * The content of a history file, with one JSON object per line. Lines that are not departures are
 * only counted.
 */
export function readHistory(text: string): KeptHistory {
  const departures: PastDeparture[] = [];
  let [cut, foreign] = [0, 0];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const parsed = parseJson(line);
    const departure = keptDeparture(parsed?.value);
    if (departure !== undefined) departures.push(departure);
    else if (parsed === undefined && line.startsWith("{")) cut += 1;
    else foreign += 1;
  }
  return { departures, cut, foreign };
}

/**
 * A file may have been written by another version, or by hand. Each field is read on its own, so
 * that a missing one does not keep the board from starting.
 */
function keptDeparture(value: unknown): PastDeparture | undefined {
  if (!isFields(value)) return undefined;
  const [id, node] = [textOf(value.id), textOf(value.node)];
  const [outcome, endedAt] = [oneOf(outcomes, value.outcome), keptInstant(value.endedAt)];
  if (id === undefined || node === undefined) return undefined;
  if (outcome === undefined || endedAt === null) return undefined;
  return {
    ...{ id, node, outcome, endedAt, name: textOf(value.name) ?? node },
    nodeUid: textOf(value.nodeUid) ?? null,
    policy: textOf(value.policy) ?? null,
    cause: oneOf(causes, value.cause) ?? "Planned",
    reason: oneOf(reasons, value.reason) ?? null,
    explain: textOf(value.explain) ?? "",
    departAt: keptInstant(value.departAt),
    deadlineAt: keptInstant(value.deadlineAt),
    noticedAt: keptInstant(value.noticedAt),
    startedAt: keptInstant(value.startedAt),
    noticeToCordonMs: keptSpan(value.noticeToCordonMs),
    timeLeftMs: keptSpan(value.timeLeftMs),
    pods: isFields(value.pods) ? keptCounts(value.pods) : null,
    losses: listOf(value.losses).flatMap(keptLoss),
  };
}

/** Year 9999, the last that RFC 3339 supports. */
const lastAt = 253_402_300_799_000;

function keptInstant(value: unknown): Instant | null {
  const at = numberOf(value);
  return at === undefined || Math.abs(at) >= lastAt ? null : instant(Math.round(at));
}

function keptSpan(value: unknown): Millis | null {
  const span = numberOf(value);
  return span === undefined ? null : millis(span);
}

function keptCounts(fields: Readonly<Record<string, unknown>>): PodCounts {
  const count = (name: keyof PodCounts): number => Math.max(0, numberOf(fields[name]) ?? 0);
  return {
    ...{ total: count("total"), left: count("left"), evicted: count("evicted") },
    ...{ forced: count("forced"), waiting: count("waiting"), blocked: count("blocked") },
    ...{ cut: count("cut"), killed: count("killed"), leftBehind: count("leftBehind") },
  };
}

function keptLoss(value: unknown): readonly PodLoss[] {
  const fields = fieldsOf(value);
  const [pod, what] = [textOf(fields.pod), oneOf(lossKinds, fields.what)];
  if (pod === undefined || what === undefined) return [];
  return [{ pod, what, why: textOf(fields.why) ?? null }];
}

export function historyLine(past: PastDeparture): string {
  return `${JSON.stringify(past)}\n`;
}
