import type { NodeCondition, NodeFacts } from "../cluster/node.ts";
import { type Departure, isGraver, isLive } from "../departure/departure.ts";
import type { Policy } from "../policy/policy.ts";
import { selectPolicy } from "../policy/selector.ts";
import { earlier, type Instant, plus, seconds } from "../time/time.ts";
import { readAksMessage } from "./aks-message.ts";
import { isNear, type Notice, type NoticeCause, wordForId } from "./notice.ts";
import { callOf, type NoticeCall, sourceOf } from "./notice-call.ts";
import { isUndoing } from "./notice-merge.ts";

/**
 * What a platform writes on a Node when it takes it, for where no agent runs. Of several marks the
 * gravest names the case, and the earliest deadline counts. Sources: kubelet `nodeshutdown` (the Ready
 * condition's message, which may have other errors beside it), AKS node-problem-detector
 * (`PreemptionScheduled` and `VMEventScheduled`, whose message tells which event it is), OpenShift's
 * termination handler (`Terminating`, with the one reason below).
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
  const eventId = wordForId(`shutdown-${node.bootID ?? node.uid}`);
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
  const said = readAksMessage(message);
  if (said.kind === "Fault") return undefined;
  const cause = said.cause ?? named;
  if (cause === undefined || cause === "LeavesNothing") return undefined;
  const isSoon = cause === "SpotInterruption" || said.hasBegun;
  const notice: Notice = {
    cause,
    deadlineAt: said.namedAt ?? (isSoon ? plus(at, shortestMs) : undefined),
    noticedAt: at,
    source,
    eventId: said.eventId ?? wordForId(`${reason}-${said.gist}`),
  };
  return notice;
}

/** What is known where a notice is judged. Asked for, not handed over: few nodes are concerned of many. */
export interface NoticeScene {
  readonly policies: readonly Policy[];
  readonly at: Instant;
  /** The departures that a node has, and had, by the node's uid. */
  departuresOf(nodeUid: string): readonly Departure[];
  /** Of whichever node. */
  departureNamed(name: string): Departure | undefined;
}

/** What the marks on nodes call for: of nodes that a policy owns, and once for one event of one boot. */
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
 * Whether a departure was made by a mark on its node that is no more. A node that does not know takes
 * nothing back.
 */
export function isMarkGone(departure: Departure, node: NodeFacts): boolean {
  const { source = "", noticedAt } = departure;
  if (!source.startsWith("node/") || noticedAt === undefined) return false;
  const isUnclear = node.noticeConditions?.some(
    ({ isUnknown, message }) => isUnknown === true || readAksMessage(message).kind === "Fault",
  );
  return isUnclear !== true && noticeOfNode(node, noticedAt) === undefined;
}
