import { type NodeFacts, parseProviderId } from "../cluster/node.ts";
import { type Departure, isLive } from "../departure/departure.ts";
import { selectPolicy } from "../policy/selector.ts";
import { hours, type Instant, later, type Millis, minutes, plus } from "../time/time.ts";
import { longestExtendedMs } from "./lifecycle-hook.ts";
import { callOf, type NoticeCall, type NoticeScene, noticeOrder, sourceOf } from "./node-notice.ts";
import { isNear, maintenanceWindowMs, type Notice } from "./notice.ts";
import { isUndoing } from "./notice-merge.ts";

/** A notice about one machine of the fleet, from outside the cluster. */
export interface InstanceNotice {
  /** A whole providerID, or its last part where the cloud never gives it twice: `i-0abc`. */
  readonly machine: string;
  /** Its `noticedAt` is the instant of the event in the cloud's time. */
  readonly notice: Notice;
}

export type NoticeResolution =
  | NoticeCall
  /** A departure of the machine stands that says no less, or stood until the machine was gone. */
  | { readonly kind: "Known" }
  /** A departure of the node is being withdrawn, and the notice would be lost with it. */
  | { readonly kind: "Undoing" }
  /** No node is this machine; one that bears its name has a younger machine behind it. */
  | { readonly kind: "NoNode" }
  /** The machine's node falls under no policy. */
  | { readonly kind: "NotOwned" }
  /** It is true, and its time is not near (`actFromAt`). */
  | { readonly kind: "TooEarly" }
  /** Its time is long past. */
  | { readonly kind: "Stale" };

/**
 * After its deadline a machine is gone, or was started again and the notice is of its last life.
 */
const staleAfterMs: Millis = minutes(5);

/** What names no deadline is true for this long; of a hook for as long as one can wait. */
const trueForMs: Millis = hours(1);

export interface MachineScene extends NoticeScene {
  /** By a notice's `machine`. */
  nodeOf(machine: string): NodeFacts | undefined;
}

/** What a notice calls for; the same event by two ways is one departure. */
export function resolveNotice(
  instanceNotice: InstanceNotice,
  scene: MachineScene,
): NoticeResolution {
  const { machine, notice } = instanceNotice;
  if (notice.withdrawn === true) return resolveWithdrawal(instanceNotice, scene);
  if (isStale(notice, scene.at)) return { kind: "Stale" };
  const node = scene.nodeOf(machine);
  if (node === undefined || isAnothers(notice, node)) return { kind: "NoNode" };
  if (selectPolicy(node, scene.policies) === undefined) return { kind: "NotOwned" };
  if (!isNear(notice, scene.at)) return { kind: "TooEarly" };
  const former = scene.departuresOf(node.uid);
  if (former.some((one) => isDealtWith(one, notice))) return { kind: "Known" };
  if (former.some(isUndoing)) return { kind: "Undoing" };
  const { departureNamed } = scene;
  return callOf(node, { notice, former, departureNamed }) ?? { kind: "Known" };
}

/**
 * A withdrawn event undoes the departure that it created, unless another has moved its
 * deadline since. Where it has made none yet, one is made that is off from the first: by that the
 * event is known when the announcement of it comes after, having waited for its time.
 */
function resolveWithdrawal(
  { machine, notice }: InstanceNotice,
  scene: MachineScene,
): NoticeResolution {
  const node = scene.nodeOf(machine);
  const former = node === undefined ? [] : scene.departuresOf(node.uid);
  const made = former.filter(({ source }) => source === sourceOf(notice));
  const live = made.find((one) => isLive(one) && one.withdrawnAt === undefined);
  if (live !== undefined && !isEarlier(live, notice)) {
    return { kind: "Withdraw", departure: live, at: notice.noticedAt };
  }
  if (made.length > 0 || isOver(notice, scene.at)) return { kind: "Known" };
  if (node === undefined) return { kind: "NoNode" };
  if (selectPolicy(node, scene.policies) === undefined) return { kind: "NotOwned" };
  if (!isNear(notice, scene.at)) return { kind: "TooEarly" };
  const { departureNamed } = scene;
  return { kind: "Make", order: noticeOrder(node, { notice, former, departureNamed }) };
}

function isEarlier(departure: Departure, { deadlineAt }: Notice): boolean {
  const known = departure.deadlineAt;
  return known !== undefined && deadlineAt !== undefined && known < deadlineAt;
}

/** Nothing that it could call off is to come any more: that would be stale. */
function isOver({ deadlineAt, noticedAt }: Notice, at: Instant): boolean {
  return at > plus(later(deadlineAt ?? noticedAt, noticedAt), trueForMs);
}

/**
 * Names come again: what happened before this node's machine was born happened to another one.
 * EC2's ids never do, and a young node's Spot warning may be older than its Node; but a machine
 * that was stopped may have been started again.
 */
function isAnothers({ cause, noticedAt }: Notice, node: NodeFacts): boolean {
  const { createdAt, instanceBornAt, providerID } = node;
  const staysItself = parseProviderId(providerID ?? "")?.cloud === "aws";
  if (staysItself && cause !== "NodeShutdown" && cause !== "Preempted") return false;
  return (instanceBornAt ?? createdAt ?? noticedAt) > noticedAt;
}

const machineLeft: ReadonlySet<unknown> = new Set(["Planned", "Preempted", "Forced", "Expired"]);

/** The event has had its departure, or its machine left after it by another one. */
function isDealtWith(departure: Departure, notice: Notice): boolean {
  if (departure.source === sourceOf(notice)) return true;
  const { endedAt, outcome } = departure.status;
  return endedAt !== undefined && endedAt >= notice.noticedAt && machineLeft.has(outcome);
}

function isStale({ cause, deadlineAt, noticedAt }: Notice, at: Instant): boolean {
  // A machine that was shutting down is gone soon, too, or was started again.
  if (cause === "ScheduledMaintenance" && deadlineAt !== undefined) {
    return at > plus(deadlineAt, maintenanceWindowMs);
  }
  const isShort = deadlineAt !== undefined || cause === "NodeShutdown";
  if (isShort) return at > plus(deadlineAt ?? noticedAt, staleAfterMs);
  return at > plus(noticedAt, cause === "LifecycleHook" ? longestExtendedMs : trueForMs);
}
