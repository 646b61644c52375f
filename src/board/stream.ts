/**
 * What the board's server sends to its pages: its types, and how a page gets from one picture to
 * the next. Server and page both use this file, so that they cannot disagree.
 */

import type { Outcome, Phase } from "../core/departure/departure.ts";
import { amountOf } from "../core/limits/budget.ts";
import type { PlannedDeparture, PlannedReason, PolicyPlan } from "../core/plan/fleet-plan.ts";
import type { HeadlineLine, OperationStanding, UnreadList } from "../core/plan/headline.ts";
import type { PolicyStandingReason } from "../core/plan/policy-standing.ts";
import type { Cause } from "../core/policy/action.ts";
import type { Saying } from "../core/reason/english.ts";
import type { Reason } from "../core/reason/reason.ts";
import { type Instant, type Millis, plus } from "../core/time/time.ts";

/** A wave that is still to come, or is in progress. */
export interface WaveSpan {
  /** From 1, which is the canary. */
  readonly wave: number;
  readonly of: number;
  /** From its first start until its last drain may be over. */
  readonly startAt: Instant;
  readonly endAt: Instant;
}

export interface PlannedWaves {
  readonly spans: readonly WaveSpan[];
  /** By the uid of a node; those that leave after the last wave have none. */
  readonly waveOf: ReadonlyMap<string, number>;
}

/** The wave of each departure of a plan, if all waves before it succeed. */
export function plannedWaves({ policy, waves, matched, departures }: PolicyPlan): PlannedWaves {
  const spans: WaveSpan[] = [];
  const waveOf = new Map<string, number>();
  if (waves === undefined || waves.state === "Passed") return { spans, waveOf };
  const sizes = policy.waves?.sizes ?? [];
  const left = departures.toSorted((a, b) => waveStart(a) - waveStart(b));
  let next = 0;
  for (let wave = waves.wave; wave <= sizes.length; wave += 1) {
    const amount = sizes[wave - 1];
    if (amount === undefined) break;
    const isCurrent = wave === waves.wave;
    const begun = isCurrent ? waves.succeeded + waves.underWay : 0;
    const size = Math.max(0, amountOf(amount, matched) - begun);
    const members = left.slice(next, next + size);
    next += size;
    for (const { node } of members) waveOf.set(node.uid, wave);
    const span = waveSpan(members, policy.drain.timeoutMs);
    if (span !== undefined) spans.push({ wave, of: sizes.length, ...span });
  }
  return { spans, waveOf };
}

function waveStart({ heldBackTo, departAt }: PlannedDeparture): Instant {
  return heldBackTo ?? departAt;
}

function waveSpan(members: readonly PlannedDeparture[], drainMs: Millis) {
  const [first, last] = [members[0], members.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  return { startAt: waveStart(first), endAt: plus(waveStart(last), drainMs) };
}

/** Every item of a picture has an id, which is never reused. */
export interface Identified {
  readonly id: string;
}

export interface BoardPicture {
  readonly fleet: FleetState;
  /** A row per node, and one per departure whose Node object is gone; in no order. */
  readonly rows: readonly BoardRow[];
  /** Departures that have ended, the newest ones. */
  readonly past: readonly PastDeparture[];
  readonly policies: readonly PolicyCard[];
}

/** What to show about the cluster and the board itself. */
export interface FleetState {
  /** The context of the kubeconfig. */
  readonly cluster: string;
  readonly isDemo: boolean;
  readonly connection: ClusterConnection;
  /** One sentence for each permission or definition that is missing, with what it is needed for. */
  readonly missing: readonly string[];
  readonly rights: BoardRights;
  readonly days: readonly OutcomeDay[];
  /** What a person who looks once has to know first. */
  readonly headline: readonly HeadlineLine[];
  /** Whether `/api/outcomes` has more of them, from Prometheus. */
  readonly isCounted: boolean;
}

/** What is known about the cluster and the board itself; the rest of the state is computed. */
export interface FleetFacts extends Omit<FleetState, "days" | "headline"> {
  /** Absent if it has not been read yet, or there is nothing to read. */
  readonly operation?: OperationStanding | undefined;
}

export type ClusterConnection =
  /** The first complete list has not arrived yet. */
  | { readonly kind: "Connecting" }
  | { readonly kind: "Live" }
  /** The rows are the last known state. */
  | { readonly kind: "Away"; readonly sinceAt: Instant; readonly problem: string };

/** The caller's permissions, by SelfSubjectAccessReview. */
export interface BoardRights {
  readonly patchNodes: boolean;
  readonly createDepartures: boolean;
  readonly patchDepartures: boolean;
  readonly deleteDepartures: boolean;
  readonly patchPolicies: boolean;
}

export const noRights: BoardRights = {
  patchNodes: false,
  createDepartures: false,
  patchDepartures: false,
  deleteDepartures: false,
  patchPolicies: false,
};

/** `Stays`: nothing is planned for it. `Held`: its time has come, and something holds it. */
export type RowState = "Leaving" | "Held" | "Scheduled" | "Stays";

export interface BoardRow extends Identified {
  readonly node: string;
  /**
   * The uid of the Node object; an act names it, so that it never affects another node of the name.
   */
  readonly uid: string;
  readonly zone: string;
  readonly pool: string;
  readonly policy: string | null;
  readonly state: RowState;
  readonly phase: Phase | null;
  readonly cause: Cause | null;
  /** The name of the live Departure. */
  readonly departure: string | null;
  readonly departureUid: string | null;
  readonly bornAt: Instant | null;
  readonly earliestAt: Instant | null;
  readonly departAt: Instant | null;
  readonly deadlineAt: Instant | null;
  readonly noticedAt: Instant | null;
  readonly startedAt: Instant | null;
  /** When it is expected to start, if budgets or waves will hold it past `departAt`. */
  readonly heldBackTo: Instant | null;
  /** Until when a freeze of its policy holds it past `departAt`. */
  readonly frozenUntil: Instant | null;
  readonly window: string | null;
  /** The wave in which it is to leave; null without one. */
  readonly wave: number | null;
  readonly reason: Reason;
  /** Why it was given its instant; null if the plan has none for it. */
  readonly plannedBy: PlannedReason | null;
  /** The core's own sentence; as text, if it is that of the Departure. */
  readonly explain: Saying;
  readonly hold: RowHold | null;
  readonly pods: PodCounts | null;
}

/** A mark of a person on the node. */
export interface RowHold {
  /** The annotation, or `spec.hold` of its Departure. */
  readonly mark: string;
  /** Null: indefinitely. */
  readonly untilAt: Instant | null;
  /** Whether it is Lastcall's own annotation, which the board can remove. */
  readonly isOurs: boolean;
  /** The program that wrote it, as in `kubectl-annotate`, and when; null if not known. */
  readonly by: string | null;
  readonly sinceAt: Instant | null;
}

export interface PodCounts {
  readonly total: number;
  readonly left: number;
  readonly evicted: number;
  readonly forced: number;
  readonly waiting: number;
  readonly blocked: number;
  readonly cut: number;
  readonly killed: number;
  readonly leftBehind: number;
}

export interface PastDeparture extends Identified {
  readonly name: string;
  readonly node: string;
  /** Tells a machine from earlier ones of its name; null in a history of an older version. */
  readonly nodeUid: string | null;
  readonly policy: string | null;
  readonly cause: Cause;
  readonly outcome: Outcome;
  readonly reason: Reason | null;
  readonly explain: string;
  readonly departAt: Instant | null;
  readonly deadlineAt: Instant | null;
  readonly noticedAt: Instant | null;
  readonly startedAt: Instant | null;
  readonly endedAt: Instant;
  /** From the notice until the node was cordoned. */
  readonly noticeToCordonMs: Millis | null;
  /** The time that was left of the notice when the node was empty. */
  readonly timeLeftMs: Millis | null;
  readonly pods: PodCounts | null;
  readonly losses: readonly PodLoss[];
}

/** All of them, from the best to the worst. */
export const outcomes: readonly Outcome[] = [
  ...(["Planned", "Preempted", "Cancelled", "RolledBack"] as const),
  ...(["Forced", "Expired", "Failed"] as const),
];

export const lossKinds = ["Killed", "LeftBehind", "Forced"] as const;

/** A pod that did not leave as it should have. */
export interface PodLoss {
  readonly pod: string;
  readonly what: (typeof lossKinds)[number];
  /** The audit rule that predicted it, or why it was deleted despite its budget. */
  readonly why: string | null;
}

/** The outcomes of one day (UTC) under one policy. */
export interface OutcomeDay {
  /** As in `2026-11-20`. */
  readonly day: string;
  readonly policy: string | null;
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
  readonly podsCut: number;
  readonly podsLost: number;
  readonly podsForced: number;
}

export interface PolicyCard extends Identified {
  readonly name: string;
  readonly matched: number;
  /** Why it cannot be read; the rest of the card is empty then. */
  readonly problem: string | null;
  readonly standing: PolicyStandingReason;
  readonly isDryRun: boolean;
  readonly wantedMs: Millis | null;
  readonly reachedMs: Millis | null;
  readonly bestMs: Millis | null;
  readonly forecast: Saying;
  /** How many departures are held back. */
  readonly held: number;
  readonly freezeUntil: Instant | null;
  /** When no planned departure may start, within the time that the timeline shows. */
  readonly shut: readonly ClosedSpan[];
  /** Waves that are not over. */
  readonly waves: readonly WaveSpan[];
}

export interface ClosedSpan {
  readonly startAt: Instant;
  readonly endAt: Instant;
  readonly why: "Window" | "Freeze";
}

/**
 * Whether there is anything to say about nodes and policies: until the first lists are complete, it
 * is not even known that there are none.
 */
export function isKnown({ fleet, rows, policies }: BoardPicture): boolean {
  const { kind } = fleet.connection;
  const isEmpty = rows.length === 0 && policies.length === 0;
  return kind === "Live" || (kind === "Away" && !isEmpty);
}

const unreadNames: Readonly<Record<string, UnreadList>> = {
  nodes: "nodes",
  "departurepolicies.lastcall.dev": "policies",
  "departures.lastcall.dev": "departures",
};

/** The lists that may not be read or do not exist: what they would contain is unknown. */
export function unreadLists(missing: readonly string[]): readonly UnreadList[] {
  return missing.flatMap((sentence) => {
    const list = /^Cannot \w+ ([\w.]+): /.exec(sentence)?.[1];
    return unreadNames[list ?? ""] ?? [];
  });
}

/** Whether its departure is only planned, and never carried out. */
export function isDryRun(
  { policy, cause }: Pick<BoardRow, "policy" | "cause">,
  { policies }: Pick<BoardPicture, "policies">,
): boolean {
  const card = policies.find(({ name }) => name === policy);
  return card?.isDryRun === true && (cause === null || cause === "Planned");
}

/** There are no policies, as opposed to none that may be seen. */
export function hasNoPolicy({ fleet, policies }: BoardPicture): boolean {
  return policies.length === 0 && !unreadLists(fleet.missing).includes("policies");
}

/** The times in the reader's own format. */
export function heldByText(by: string | null, since: string | null, until: string | null): string {
  const who = by === null ? "" : ` by ${by}`;
  const when = since === null ? "" : ` since ${since}`;
  return `Held${who}${when}${who === "" && when === "" ? "" : ","} until ${until ?? "released"}`;
}

/**
 * Held indefinitely by an annotation: it leaves only when that is removed, whatever instant its
 * Departure has. A node that is held until an instant has its place among the next departures.
 */
export function isHeldForGood({ state, reason, hold }: BoardRow): boolean {
  return state !== "Leaving" && reason === "OnHold" && hold !== null && hold.untilAt === null;
}

/** The results of one of the demo's fleets: one figure for each promise. */
export interface FleetFigures {
  /** Machines that the cloud terminated because they had reached 24 hours. */
  readonly lostAtLimit: number;
  /** The most machines that the cloud terminated within one hour, early or at 24 hours. */
  readonly lostAtOnce: number;
  /** Pods that were killed before their program had ended. */
  readonly podsKilled: number;
  readonly replacements: number;
}

/** The cluster's time, and how many times faster than the page's own it runs. */
export interface BoardClock {
  readonly at: Instant;
  readonly rate: number;
}

export interface ListChange<T extends Identified> {
  readonly set: readonly T[];
  readonly gone: readonly string[];
}

/** What is absent is unchanged. */
export interface BoardChange {
  readonly fleet?: FleetState;
  readonly rows?: ListChange<BoardRow>;
  readonly past?: ListChange<PastDeparture>;
  readonly policies?: ListChange<PolicyCard>;
}

/**
 * `id` is `<run of the server>.<number>`. A page that names the last one that it received gets
 * everything that is new since then as one change, or a full picture if that is no longer known.
 */
export type StreamMessage =
  | {
      readonly kind: "Picture";
      readonly id: string;
      readonly clock: BoardClock;
      readonly picture: BoardPicture;
    }
  | {
      readonly kind: "Change";
      readonly id: string;
      /**
       * The message before it: the change is of no use to a page whose last message was another.
       */
      readonly after: string;
      readonly clock: BoardClock;
      readonly change: BoardChange;
    }
  /** Shows that the stream is alive, and what time it is. */
  | { readonly kind: "Clock"; readonly clock: BoardClock };

export function withChange(picture: BoardPicture, change: BoardChange): BoardPicture {
  return {
    fleet: change.fleet ?? picture.fleet,
    rows: changed(picture.rows, change.rows),
    past: changed(picture.past, change.past).toSorted(newestFirst),
    policies: changed(picture.policies, change.policies),
  };
}

/** The order of departures that have ended. */
export function newestFirst(a: PastDeparture, b: PastDeparture): number {
  return b.endedAt - a.endedAt || (a.id < b.id ? -1 : 1);
}

function changed<T extends Identified>(
  items: readonly T[],
  change: ListChange<T> | undefined,
): readonly T[] {
  if (change === undefined) return items;
  const byId = new Map(items.map((item) => [item.id, item]));
  for (const id of change.gone) byId.delete(id);
  for (const item of change.set) byId.set(item.id, item);
  return [...byId.values()];
}
