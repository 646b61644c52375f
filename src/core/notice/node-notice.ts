import type { ConditionCause } from "../../cloud/facts/cloud-facts.ts";
import { noticeConditions } from "../../cloud/facts/cloud-marks.ts";
import { mayBeSameMachine, type NodeCondition, type NodeFacts } from "../cluster/node.ts";
import type { NewDeparture } from "../departure/decision.ts";
import {
  type Departure,
  endsAsPlanned,
  freeName,
  hasTakenMachine,
  isGraver,
  isLive,
} from "../departure/departure.ts";
import { departureOfNotice } from "../departure/departure-of-notice.ts";
import { type Policy, selectPolicy } from "../policy/policy.ts";
import { explain } from "../reason/reason.ts";
import { earlier, type Instant, parseHttpDate, plus, seconds } from "../time/time.ts";
import {
  eventIdFrom,
  isNear,
  isNodeMark,
  isUndoing,
  type Notice,
  type NoticeUpdate,
  noticeUpdate,
} from "./notice.ts";

/**
 * Reads the notice that a platform writes to a Node, for nodes without an agent. Of several marks,
 * the most severe sets the cause, and the earliest deadline counts. Sources: kubelet `nodeshutdown`
 * (the message of the Ready condition, which may contain other errors as well), the
 * node-problem-detector of a cloud (`noticeConditions` of its facts), OpenShift's termination
 * handler (`Terminating`, with the one reason below).
 */
export function noticeOfNode(node: NodeFacts, at: Instant): Notice | undefined {
  if (node.ready && node.noticeConditions === undefined) return undefined;
  const notices = (node.noticeConditions ?? []).flatMap((one) => ofCondition(one, node, at) ?? []);
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

/** A kubelet shutdown. It has no single deadline, since it depends on each pod's priority. */
function ofShutdown(node: NodeFacts, at: Instant): readonly Notice[] {
  if (node.ready || !node.readyMessage?.includes("node is shutting down")) return [];
  const eventId = eventIdFrom(`shutdown-${node.bootID ?? node.uid}`);
  return [{ cause: "NodeShutdown", noticedAt: at, source: "node/Ready", eventId }];
}

/**
 * The cause by a condition's reason, or else by its type. Its message takes precedence. The first
 * one is the reason of OpenShift's condition.
 */
const causes: Readonly<Record<string, ConditionCause>> = Object.assign(
  { TerminationRequested: "SpotInterruption" },
  ...noticeConditions.map((one) => one.causes),
);

/** Looks up own properties only, since every object has a `constructor`. */
function ownCause(among: typeof causes, name: string): ConditionCause | undefined {
  return Object.hasOwn(among, name) ? among[name] : undefined;
}

/** The shortest notice of Preempt. An event that has started may leave less. */
const shortestMs = seconds(30);

function ofCondition(condition: NodeCondition, node: NodeFacts, at: Instant): Notice | undefined {
  const { type, reason, message, isUnknown } = condition;
  if (isUnknown === true) return undefined;
  const found = readMessage(message);
  if (found.kind === "Fault") return undefined;
  const cause = found.cause ?? ownCause(causes, reason) ?? ownCause(causes, type);
  if (cause === undefined || cause === "LeavesNothing") return undefined;
  const isSoon = cause === "SpotInterruption" || found.hasBegun;
  return {
    cause,
    deadlineAt: found.namedAt ?? (isSoon ? plus(at, shortestMs) : undefined),
    ...(isSoon && found.namedAt === undefined && { isReckoned: true }),
    noticedAt: at,
    source: `node/${type}`,
    eventId:
      found.eventId ?? eventIdFrom(`${reason}-${found.told ?? undatedId(found, condition, node)}`),
  };
}

/** Without a time of its own, an event is told from the next one by when its condition changed. */
function undatedId(
  { id }: Extract<ConditionMessage, { readonly kind: "Event" }>,
  { since }: NodeCondition,
  { bootID, uid }: NodeFacts,
): string {
  return `${id}-${since ?? bootID ?? uid}`;
}

/**
 * The state that notices are evaluated against. Looked up on demand, because only a few of many
 * nodes are concerned.
 */
export interface NoticeScene {
  readonly policies: readonly Policy[];
  readonly at: Instant;
  /** All departures of a node, live and ended, by the node's uid. */
  departuresOf(nodeUid: string): readonly Departure[];
  /** The departure of this name, whichever node it belongs to. */
  departureNamed(name: string): Departure | undefined;
}

/**
 * The calls that the marks on nodes require, for nodes of a policy and once per event. After a
 * reboot a Node still has the mark of the event until the node's problem detector runs again; but a
 * node that was rebooted by accident before its event has that event still to come.
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
    // Evaluated again when the other departure has ended.
    if (former.some((one) => isUndoingOf(node, one))) return [];
    const isThisBoot = (one: Departure) => one.node.bootID === node.bootID;
    // What the node has been through by its reboot, however long its departure takes to end.
    const hasPassed = (one: Departure) => !isWithdrawn(one) && !isAhead(notice, at);
    // A late watch may still show the shutdown of a machine that has left.
    const hasHadIt = former.some(
      (one) =>
        (one.source === source && (isThisBoot(one) ? isOver(one) : hasPassed(one))) ||
        (hasTakenMachine(one) && isThisBoot(one)),
    );
    const call = hasHadIt ? undefined : callOf(node, { notice, former, departureNamed });
    return call === undefined ? [] : [call];
  });
}

/** Whether the notice names a time that has not come. */
function isAhead({ deadlineAt, isReckoned }: Notice, at: Instant): boolean {
  return isReckoned !== true && deadlineAt !== undefined && deadlineAt > at;
}

/** Whether a departure has dealt with its mark. A mark that had gone is another event. */
function isOver(departure: Departure): boolean {
  return !isLive(departure) && !isWithdrawn(departure);
}

function isWithdrawn({ status }: Departure): boolean {
  return status.reason === "NoticeWithdrawn";
}

/**
 * Whether the mark that a departure was created from is gone, or only a weaker one remains, such as
 * advice. Only the condition itself shows it: silence proves nothing, since a machine that is off
 * is silent as well, and a node that reports a fault withdraws nothing.
 */
export function isMarkGone(departure: Departure, node: NodeFacts): boolean {
  const { source = "", noticedAt, cause } = departure;
  if (!isNodeMark(source) || noticedAt === undefined) return false;
  if (!reports(node, source)) return false;
  const isUnclear = node.noticeConditions?.some(
    ({ isUnknown, message }) => isUnknown === true || readMessage(message).kind === "Fault",
  );
  if (isUnclear === true) return false;
  const standing = noticeOfNode(node, noticedAt);
  return standing === undefined || isGraver(cause, standing.cause);
}

/**
 * Whether the condition of a source is True or False now. The node lifecycle controller sets Ready
 * to Unknown when the kubelet is silent for 50 seconds, and no other condition that is read here.
 * Source: kubernetes `pkg/controller/nodelifecycle/node_lifecycle_controller.go`, tryUpdateNodeHealth.
 */
function reports(node: NodeFacts, source: string): boolean {
  const [, type = ""] = source.split("/");
  if (type === "Ready") return node.isUnreachable !== true;
  if (node.clearedConditions?.includes(type) === true) return true;
  return node.noticeConditions?.some((one) => one.type === type && one.isUnknown !== true) === true;
}

/** The parsed message of a condition. */
type ConditionMessage =
  | {
      readonly kind: "Event";
      /** `LeavesNothing`: the machine only pauses. Absent: the message names no cause. */
      readonly cause?: ConditionCause | undefined;
      /** The event has started, so the time that it names is past. */
      readonly hasBegun: boolean;
      readonly namedAt?: Instant | undefined;
      readonly eventId?: string | undefined;
      /** The time that the message names, as its text. */
      readonly told?: string | undefined;
      /** The kind of a message that names no time. */
      readonly id: string;
    }
  /**
   * The node could not query its metadata service, so its state is unknown.
   */
  | { readonly kind: "Fault" };

/** By the event that a message begins with. */
const eventCauses: Readonly<Record<string, ConditionCause>> = Object.assign(
  {},
  ...noticeConditions.map((one) => one.eventCauses),
);

/**
 * Messages of the node-problem-detector's custom plugin monitor, as AKS has it, such as
 * `Preempt Scheduled: Mon, 03 Aug 2026 08:18:16 GMT. DurationInSeconds: -1. … EventId: 218E…`,
 * `Started. DurationInSeconds: -1.`, `SpotRebalanceRecommendation Advisory: .` and
 * `IMDS query failed, exit code: 28`. Any other text counts as an event whose time is unknown,
 * because notices fail open. Sources: azure-docs "Node Problem Detector (NPD) in AKS nodes",
 * node-problem-detector's custom plugin monitor.
 */
function readMessage(message: string): ConditionMessage {
  const [lead = "", type = "", state = ""] =
    /^\s*(?:(\w+)\s+)?(Scheduled|Started|Advisory)\b/i.exec(message) ?? [];
  if (lead === "" && isFault.test(message)) return { kind: "Fault" };
  const isAdvice = state.toLowerCase() === "advisory";
  const hasBegun = state.toLowerCase() === "started";
  const told = isAdvice || hasBegun ? undefined : dateIn(message);
  return {
    kind: "Event",
    cause: isAdvice ? "RebalanceRecommendation" : ownCause(eventCauses, type.toLowerCase()),
    hasBegun,
    namedAt: parseHttpDate(told ?? ""),
    eventId: /EventId: ([0-9A-Za-z-]{8,80})/i.exec(message)?.[1],
    told,
    id: isAdvice ? "advisory" : hasBegun ? "started" : "",
  };
}

const isFault = /\b(?:query failed|timed? ?out|exit code)\b/i;

function dateIn(message: string): string | undefined {
  const date = /[A-Z][a-z]{2},\s+\d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} (?:GMT|UTC)/;
  return date.exec(message)?.[0].replace(/\s+/g, " ").replace("UTC", "GMT");
}

/** The write that a notice requires: a new departure, or a change of an existing one. */
export type NoticeCall =
  | { readonly kind: "Make"; readonly order: NewDeparture }
  | { readonly kind: "Force"; readonly departure: Departure; readonly update: NoticeUpdate }
  /** The cloud has withdrawn the notice. */
  | { readonly kind: "Withdraw"; readonly departure: Departure; readonly at: Instant };

interface NoticedNode {
  readonly notice: Notice;
  /** All departures of the node, live and ended. */
  readonly former: readonly Departure[];
  /** The departure of this name, whichever node it belongs to. */
  departureNamed(name: string): Departure | undefined;
}

/** Whether the node's departure is being withdrawn: a notice written to it would be lost. */
export function isUndoingOf(node: NodeFacts, departure: Departure): boolean {
  return isUndoing(departure) && mayBeSameMachine(departure.node, node);
}

/** The source that a notice's departure records, which identifies the event. */
export function sourceOf({ source, eventId }: Notice): string {
  return `${source}/${eventId}`;
}

/**
 * The call for a new notice; undefined if a departure of the node already covers it, or lasts until
 * the machine is gone. The earlier deadline counts.
 */
export function callOf(node: NodeFacts, how: NoticedNode): NoticeCall | undefined {
  const { notice, former } = how;
  const isOfMachine = (one: Departure) => mayBeSameMachine(one.node, node);
  const chosen = departureOfNotice(former, notice.cause, isOfMachine);
  if (chosen === undefined) return { kind: "Make", order: noticeOrder(node, how) };
  if (endsAsPlanned(chosen, notice.cause)) return undefined;
  const update = noticeUpdate(chosen, { ...notice, source: sourceOf(notice) });
  return update && { kind: "Force", departure: chosen, update };
}

/** The new departure of a notice, under the node's next free name. */
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
