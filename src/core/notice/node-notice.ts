import type { NodeCondition, NodeFacts } from "../cluster/node.ts";
import type { NewDeparture } from "../departure/decision.ts";
import {
  type Departure,
  departureOfNotice,
  freeName,
  isBeingReleased,
  isGraver,
  isLive,
  isSequelOf,
} from "../departure/departure.ts";
import type { Policy } from "../policy/policy.ts";
import { selectPolicy } from "../policy/selector.ts";
import { explain } from "../reason/explain.ts";
import { earlier, type Instant, parseHttpDate, plus, seconds } from "../time/time.ts";
import { eventIdFrom, isNear, type Notice, type NoticeCause } from "./notice.ts";
import { isNodeMark, isUndoing, type NoticeUpdate, noticeUpdate } from "./notice-merge.ts";

/**
 * What a platform writes on a Node when it takes it, for where no agent runs. Of several marks the
 * gravest names the cause, and the earliest deadline counts. Sources: kubelet `nodeshutdown` (the
 * Ready condition's message, which may have other errors beside it), AKS node-problem-detector
 * (`PreemptionScheduled` and `VMEventScheduled`, whose message says which event it is),
 * OpenShift's termination handler (`Terminating`, with the one reason below).
 */
export function noticeOfNode(node: NodeFacts, at: Instant): Notice | undefined {
  if (node.ready && node.noticeConditions === undefined) return undefined;
  const notices = (node.noticeConditions ?? []).flatMap((one) => ofCondition(one, at) ?? []);
  const all = [...notices, ...ofShutdown(node, at)];
  const [gravest] = all.toSorted((one, other) => {
    if (isGraver(one.cause, other.cause)) return -1;
    if (isGraver(other.cause, one.cause)) return 1;
    return (one.deadlineAt ?? never) - (other.deadlineAt ?? never);
  });
  const deadlines = all.flatMap(({ deadlineAt }) => deadlineAt ?? []);
  if (gravest === undefined || deadlines.length === 0) return gravest;
  return { ...gravest, deadlineAt: deadlines.reduce(earlier) };
}

const never = Number.MAX_SAFE_INTEGER;

/** How long the kubelet still waits depends on each pod's priority: there is no one deadline. */
function ofShutdown(node: NodeFacts, at: Instant): readonly Notice[] {
  if (node.ready || !node.readyMessage?.includes("node is shutting down")) return [];
  const eventId = eventIdFrom(`shutdown-${node.bootID ?? node.uid}`);
  return [{ cause: "NodeShutdown", noticedAt: at, source: "node/Ready", eventId }];
}

const eventCauses = {
  PreemptScheduled: "SpotInterruption",
  SpotEvictionIncoming: "SpotInterruption",
  TerminationRequested: "SpotInterruption",
  TerminateScheduled: "LifecycleHook",
  RebootScheduled: "ScheduledMaintenance",
  RedeployScheduled: "ScheduledMaintenance",
} as const;

/** Only by names of its own: every object has a `constructor`. */
function causeOf(reason: string): NoticeCause | undefined {
  return Object.hasOwn(eventCauses, reason)
    ? eventCauses[reason as keyof typeof eventCauses]
    : undefined;
}

/** Preempt's shortest notice; what has started, or names no time, may be nearer. */
const shortestMs = seconds(30);

function ofCondition(condition: NodeCondition, at: Instant): Notice | undefined {
  const { type, reason, message, isUnknown } = condition;
  if (isUnknown === true) return undefined;
  const named = causeOf(reason);
  // A condition of its own for preemption needs no reason that we know.
  const cause = named ?? (type === "PreemptionScheduled" ? "SpotInterruption" : undefined);
  return announced({ cause, reason, message, source: `node/${type}` }, at);
}

/**
 * The same where the platform writes an Event about the Node, as AKS does on nodes that have no
 * condition for it. No Event takes it back.
 */
export function noticeOfEvent(
  { reason, message }: { readonly reason: string; readonly message: string },
  at: Instant,
): Notice | undefined {
  const cause = causeOf(reason);
  return cause && announced({ cause, reason, message, source: "azure/node-event" }, at);
}

/** The reasons of the Events that `noticeOfEvent` knows. */
export const noticeEventReasons = [
  "PreemptScheduled",
  "TerminateScheduled",
  "RebootScheduled",
  "RedeployScheduled",
] as const satisfies readonly (keyof typeof eventCauses)[];

interface Announced {
  /** By its reason; its message knows better. */
  readonly cause: NoticeCause | undefined;
  readonly reason: string;
  readonly message: string;
  readonly source: string;
}

function announced({ cause: named, reason, message, source }: Announced, at: Instant) {
  const found = readAksMessage(message);
  if (found.kind === "Fault") return undefined;
  const cause = found.cause ?? named;
  if (cause === undefined || cause === "LeavesNothing") return undefined;
  const isSoon = cause === "SpotInterruption" || found.hasBegun;
  const notice: Notice = {
    cause,
    deadlineAt: found.namedAt ?? (isSoon ? plus(at, shortestMs) : undefined),
    noticedAt: at,
    source,
    eventId: found.eventId ?? eventIdFrom(`${reason}-${found.id}`),
  };
  return notice;
}

/**
 * What is known where a notice is judged. Asked for, not handed over: few nodes are concerned of
 * many.
 */
export interface NoticeScene {
  readonly policies: readonly Policy[];
  readonly at: Instant;
  /** The departures that a node has, and had, by the node's uid. */
  departuresOf(nodeUid: string): readonly Departure[];
  /** Of whichever node. */
  departureNamed(name: string): Departure | undefined;
}

/**
 * What the marks on nodes call for: of nodes that a policy owns, and once for one event of one
 * boot.
 */
export function callsOfMarks(
  nodes: readonly NodeFacts[],
  { policies, at, departuresOf, departureNamed }: NoticeScene,
): readonly NoticeCall[] {
  return nodes.flatMap((node): readonly NoticeCall[] => {
    const notice = noticeOfNode(node, at);
    if (notice === undefined || !isNear(notice, at)) return [];
    if (selectPolicy(node, policies) === undefined) return [];
    const former = departuresOf(node.uid);
    const source = sourceOf(notice);
    // It is looked at again when the other has ended.
    if (former.some(isUndoing)) return [];
    const hasHadIt = former.some(
      (one) => !isLive(one) && one.source === source && one.node.bootID === node.bootID,
    );
    const call = hasHadIt ? undefined : callOf(node, { notice, former, departureNamed });
    return call === undefined ? [] : [call];
  });
}

/**
 * Whether a departure was made by a mark on its node that is no more, or of which only something
 * less sure is left, such as advice. A node that does not know takes nothing back.
 */
export function isMarkGone(departure: Departure, node: NodeFacts): boolean {
  const { source = "", noticedAt, cause } = departure;
  if (!isNodeMark(source) || noticedAt === undefined) return false;
  const isUnclear = node.noticeConditions?.some(
    ({ isUnknown, message }) => isUnknown === true || readAksMessage(message).kind === "Fault",
  );
  if (isUnclear === true) return false;
  const standing = noticeOfNode(node, noticedAt);
  return standing === undefined || isGraver(cause, standing.cause);
}

/** What the message of a condition or an Event of AKS says. */
export type AksMessage =
  | {
      readonly kind: "Event";
      /** "Leaves nothing": the machine only stands still. Absent: the message names none. */
      readonly cause?: NoticeCause | "LeavesNothing" | undefined;
      /** It has begun: the time that it names is over, whatever it is. */
      readonly hasBegun: boolean;
      readonly namedAt?: Instant | undefined;
      readonly eventId?: string | undefined;
      /** Which it is, where it has no id. */
      readonly id: string;
    }
  /**
   * The node could not ask its own metadata: it knows nothing, neither of a notice nor of its end.
   */
  | { readonly kind: "Fault" };

const causes: Readonly<Record<string, NoticeCause | "LeavesNothing">> = {
  preempt: "SpotInterruption",
  terminate: "LifecycleHook",
  reboot: "ScheduledMaintenance",
  redeploy: "ScheduledMaintenance",
  freeze: "LeavesNothing",
};

/**
 * Messages of AKS' node-problem-detector, as
 * `Preempt Scheduled: Mon, 03 Aug 2026 08:18:16 GMT. DurationInSeconds: -1. … EventId: 218E…`,
 * `Started. DurationInSeconds: -1.`, `SpotRebalanceRecommendation Advisory: .` and
 * `IMDS query failed, exit code: 28`. Any other text is of an event whose time is not known: a
 * notice fails open. Sources: azure-docs "Node Problem Detector (NPD) in AKS nodes",
 * node-problem-detector's custom plugin monitor.
 */
function readAksMessage(message: string): AksMessage {
  const [lead = "", type = "", state = ""] =
    /^\s*(?:(\w+)\s+)?(Scheduled|Started|Advisory)\b/i.exec(message) ?? [];
  if (lead === "" && isFault.test(message)) return { kind: "Fault" };
  const isAdvice = state.toLowerCase() === "advisory";
  const hasBegun = state.toLowerCase() === "started";
  const told = isAdvice || hasBegun ? undefined : dateIn(message);
  return {
    kind: "Event",
    cause: isAdvice ? "RebalanceRecommendation" : causes[type.toLowerCase()],
    hasBegun,
    namedAt: parseHttpDate(told ?? ""),
    eventId: /EventId: ([0-9A-Za-z-]{8,80})/i.exec(message)?.[1],
    id: isAdvice ? "advisory" : (told ?? (hasBegun ? "started" : "")),
  };
}

const isFault = /\b(?:query failed|timed? ?out|exit code)\b/i;

function dateIn(message: string): string | undefined {
  const date = /[A-Z][a-z]{2},\s+\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} (?:GMT|UTC)/;
  return date.exec(message)?.[0].replace(/\s+/g, " ").replace("UTC", "GMT");
}

/** What a notice about a node calls for: a departure of its own, or that one there is changed. */
export type NoticeCall =
  | { readonly kind: "Make"; readonly order: NewDeparture }
  | { readonly kind: "Force"; readonly departure: Departure; readonly update: NoticeUpdate }
  /** The cloud has withdrawn the notice behind it. */
  | { readonly kind: "Withdraw"; readonly departure: Departure; readonly at: Instant };

interface NoticedNode {
  readonly notice: Notice;
  /** The departures that the node has, and had. */
  readonly former: readonly Departure[];
  /** Of whichever node. */
  departureNamed(name: string): Departure | undefined;
}

/** What the departure of a notice names as its source, by which the same event is known again. */
export function sourceOf({ source, eventId }: Notice): string {
  return `${source}/${eventId}`;
}

/**
 * What a notice calls for where it is new; undefined where a departure of the node says no less, or
 * stands until the machine is gone. Where one stands the earlier deadline counts.
 */
export function callOf(node: NodeFacts, how: NoticedNode): NoticeCall | undefined {
  const { notice, former } = how;
  const chosen = departureOfNotice(former, notice.cause);
  if (chosen === undefined) return { kind: "Make", order: noticeOrder(node, how) };
  if (isBeingReleased(chosen) || isSequelOf(chosen, notice.cause)) return undefined;
  const update = noticeUpdate(chosen, { ...notice, source: sourceOf(notice) });
  return update && { kind: "Force", departure: chosen, update };
}

/** The departure that a notice about a node makes, under the next free name of the node's. */
export function noticeOrder(node: NodeFacts, how: NoticedNode): NewDeparture {
  const { cause, deadlineAt, noticedAt, withdrawn } = how.notice;
  const { name, uid, providerID, bootID } = node;
  return {
    ...freeName(node, how.departureNamed),
    node: { name, uid, providerID, bootID },
    ...{ cause, deadlineAt, noticedAt, source: sourceOf(how.notice), reason: "Noticed" },
    message: explain("Noticed", { node: name, deadlineAt }),
    ...(withdrawn === true ? off(name, noticedAt) : {}),
  };
}

function off(
  node: string,
  withdrawnAt: Instant,
): Pick<NewDeparture, "withdrawnAt" | "reason" | "message"> {
  return { withdrawnAt, reason: "NoticeWithdrawn", message: explain("NoticeWithdrawn", { node }) };
}
