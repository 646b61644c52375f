import { mayPassOnItsName, type NodeFacts, type NodeIdentity } from "../cluster/node.ts";
import { type Departure, isLive, isVoluntary } from "../departure/departure.ts";
import { isStale } from "./instance-notice.ts";
import { callOf, type NoticeCall, type NoticeScene, sourceOf } from "./node-notice.ts";
import { isNodeMark, type Notice } from "./notice.ts";

/**
 * The call that a notice requires after its Node has been deleted and registered again: a notice is
 * about the machine, and the new object has neither its cordon nor its departure. Undefined for any
 * other departure, for marks, which are on the Node itself, and once the notice has expired. A
 * kubelet registers its Node only when it starts: kubernetes
 * `pkg/kubelet/kubelet_node_status.go`, registerWithAPIServer.
 */
export function callForNewObject(
  departure: Departure,
  node: NodeFacts | undefined,
  scene: NoticeScene,
): NoticeCall | undefined {
  if (node === undefined || !endedWithItsObject(departure)) return undefined;
  if (!isSameMachine(departure.node, node)) return undefined;
  const notice = noticeIn(departure);
  if (notice === undefined || isNodeMark(notice.source) || isStale(notice, scene.at)) {
    return undefined;
  }
  const former = scene.departuresOf(node.uid);
  if (former.some(({ source }) => source === sourceOf(notice))) return undefined;
  return callOf(node, { notice, former, departureNamed: scene.departureNamed });
}

function endedWithItsObject(departure: Departure): boolean {
  return !isLive(departure) && departure.status.reason === "NodeGone";
}

/**
 * Whether another Node object is certainly of the same machine, and of the same boot if known. An
 * agent knows no providerID, but its boot.
 */
function isSameMachine(then: NodeIdentity, now: NodeIdentity): boolean {
  if (then.uid === now.uid) return false;
  if (then.providerID !== undefined && then.providerID !== now.providerID) return false;
  if (then.bootID !== undefined && now.bootID !== undefined) return then.bootID === now.bootID;
  return then.providerID !== undefined && !mayPassOnItsName(now);
}

/**
 * The notice of a departure. The last part of its source is the event's id; one that somebody wrote
 * without a source is known by the departure.
 */
function noticeIn(departure: Departure): Notice | undefined {
  const { cause, noticedAt, deadlineAt, source = "", withdrawnAt, uid } = departure;
  if (isVoluntary(cause) || noticedAt === undefined || withdrawnAt !== undefined) return undefined;
  const split = source.lastIndexOf("/");
  const event =
    split < 0
      ? { source: "departure", eventId: uid }
      : { source: source.slice(0, split), eventId: source.slice(split + 1) };
  return { cause, noticedAt, deadlineAt, ...event };
}
