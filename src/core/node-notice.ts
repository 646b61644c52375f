import { type Departure, isLive } from "./departure.ts";
import type { NodeCondition, NodeFacts } from "./node.ts";
import { type Notice, type NoticeCause, wordForId } from "./notice.ts";
import { callOf, isUndoing, type NoticeCall, sourceOf } from "./notice-call.ts";
import type { Policy } from "./policy.ts";
import { selectPolicy } from "./selector.ts";
import { type Instant, parseHttpDate, plus, seconds } from "./time.ts";

/**
 * What a platform writes on a Node when it takes it, for where no agent runs. Sources: kubelet
 * `nodeshutdown` (the Ready condition's message, which may have other errors beside it), AKS
 * node-problem-detector (`PreemptionScheduled`, and `VMEventScheduled` with the event as its reason),
 * OpenShift's termination handler (`Terminating`, with the one reason below).
 */
export function noticeOfNode(node: NodeFacts, at: Instant): Notice | undefined {
  if (node.ready && node.noticeConditions === undefined) return undefined;
  for (const condition of node.noticeConditions ?? []) {
    const notice = ofCondition(condition, at);
    if (notice !== undefined) return notice;
  }
  if (node.ready || !node.readyMessage?.includes("node is shutting down")) return undefined;
  // How long the kubelet still waits depends on each pod's priority: there is no one deadline.
  return {
    cause: "NodeShutdown",
    noticedAt: at,
    source: "node/Ready",
    eventId: wordForId(`shutdown-${node.bootID ?? node.uid}`),
  };
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

function ofCondition({ type, reason, message }: NodeCondition, at: Instant): Notice | undefined {
  const named = causeOf(reason);
  // A condition of its own for preemption needs no reason that we know; a freeze takes nothing away.
  const cause = named ?? (type === "PreemptionScheduled" ? "SpotInterruption" : undefined);
  return cause && announced({ cause, reason, message, source: `node/${type}` }, at);
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

function announced(
  said: Pick<Notice, "cause" | "source"> & { readonly reason: string; readonly message: string },
  at: Instant,
): Notice {
  const { cause, source, reason, message } = said;
  const told = /[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT/.exec(message);
  const eventId = /EventId: ([0-9A-Za-z-]{8,80})/i.exec(message)?.[1];
  const namedAt = parseHttpDate(told?.[0] ?? "");
  return {
    cause,
    deadlineAt: namedAt ?? (cause === "SpotInterruption" ? plus(at, shortestMs) : undefined),
    noticedAt: at,
    source,
    eventId: eventId ?? wordForId(`${reason}-${told?.[0] ?? ""}`),
  };
}

/** What is known where a notice is judged. Asked for, not handed over: few nodes are concerned of many. */
export interface NoticeScene {
  readonly policies: readonly Policy[];
  readonly at: Instant;
  /** The departures that a node has, and had, by the node's uid. */
  departuresOf(nodeUid: string): readonly Departure[];
}

/** What the marks on nodes call for: of nodes that a policy owns, and once for one event of one boot. */
export function callsOfMarks(
  nodes: readonly NodeFacts[],
  { policies, at, departuresOf }: NoticeScene,
): readonly NoticeCall[] {
  return nodes.flatMap((node): readonly NoticeCall[] => {
    const notice = noticeOfNode(node, at);
    if (notice === undefined || selectPolicy(node, policies) === undefined) return [];
    const former = departuresOf(node.uid);
    const source = sourceOf(notice);
    // It is looked at again when the other has ended.
    if (former.some(isUndoing)) return [];
    const hasHadIt = former.some(
      (one) => !isLive(one) && one.source === source && one.node.bootID === node.bootID,
    );
    const call = hasHadIt ? undefined : callOf(node, { notice, former });
    return call === undefined ? [] : [call];
  });
}

/** Whether a departure was made by a mark on its node that is no more. */
export function isMarkGone(departure: Departure, node: NodeFacts): boolean {
  const { source = "", noticedAt } = departure;
  if (!source.startsWith("node/") || noticedAt === undefined) return false;
  return noticeOfNode(node, noticedAt) === undefined;
}
