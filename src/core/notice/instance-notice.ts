import { type NodeFacts, parseProviderId } from "../cluster/node.ts";
import { type Departure, isLive } from "../departure/departure.ts";
import { selectPolicy } from "../policy/selector.ts";
import { hours, type Instant, later, type Millis, minutes, plus } from "../time/time.ts";
import { longestExtendedMs } from "./lifecycle-hook.ts";
import { callOf, type NoticeCall, type NoticeScene, noticeOrder, sourceOf } from "./node-notice.ts";
import { isNear, maintenanceWindowMs, type Notice } from "./notice.ts";
import { isUndoing } from "./notice-merge.ts";

/** A notice about one machine of the fleet from a source outside the cluster. */
export interface InstanceNotice {
  /** A providerID, or its last segment if the cloud never reuses it, such as `i-0abc`. */
  readonly machine: string;
  /** Its `noticedAt` is the event's time in the cloud's clock. */
  readonly notice: Notice;
}

export type NoticeResolution =
  | NoticeCall
  /** A departure already covers the notice, or did until the machine was gone. */
  | { readonly kind: "Known" }
  /** A departure of the node is being withdrawn, which would lose the notice. */
  | { readonly kind: "Undoing" }
  /** No node belongs to this machine; one of the same name has a newer machine. */
  | { readonly kind: "NoNode" }
  /** No policy selects the machine's node. */
  | { readonly kind: "NotOwned" }
  /** The notice is valid, but not due yet (`actFromAt`). */
  | { readonly kind: "TooEarly" }
  /** The notice expired long ago. */
  | { readonly kind: "Stale" };

/**
 * How long after its deadline a notice is valid. Later, the machine is gone or has been restarted.
 */
const staleAfterMs: Millis = minutes(5);

/** How long a notice without a deadline is valid; that of a hook as long as a hook can wait. */
const validForMs: Millis = hours(1);

export interface MachineScene extends NoticeScene {
  /** Looks up a node by a notice's `machine`. */
  nodeOf(machine: string): NodeFacts | undefined;
}

/** Decides what a notice requires. An event reported by two sources is one departure. */
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
 * A withdrawn event undoes the departure that it created, unless another notice has moved its
 * deadline since. If it has created none yet, an already withdrawn one is created, so that the
 * event is known when its delayed announcement is delivered later.
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

/** Whether everything that the withdrawal could cancel has expired. */
function isOver({ deadlineAt, noticedAt }: Notice, at: Instant): boolean {
  return at > plus(later(deadlineAt ?? noticedAt, noticedAt), validForMs);
}

/**
 * Whether the notice is about an earlier machine of the same name, because it is older than this
 * one's launch. EC2 never reuses ids, and a Spot warning may be older than a new Node; but a
 * stopped instance may have been started again.
 */
function isAnothers({ cause, noticedAt }: Notice, node: NodeFacts): boolean {
  const { createdAt, instanceBornAt, providerID } = node;
  const staysItself = parseProviderId(providerID ?? "")?.cloud === "aws";
  if (staysItself && cause !== "NodeShutdown" && cause !== "Preempted") return false;
  return (instanceBornAt ?? createdAt ?? noticedAt) > noticedAt;
}

const machineLeft: ReadonlySet<unknown> = new Set(["Planned", "Preempted", "Forced", "Expired"]);

/** Whether the event has had its departure, or the machine left by a later one. */
function isDealtWith(departure: Departure, notice: Notice): boolean {
  if (departure.source === sourceOf(notice)) return true;
  const { endedAt, outcome } = departure.status;
  return endedAt !== undefined && endedAt >= notice.noticedAt && machineLeft.has(outcome);
}

function isStale({ cause, deadlineAt, noticedAt }: Notice, at: Instant): boolean {
  // A machine that was shutting down is gone soon as well, or has been restarted.
  if (cause === "ScheduledMaintenance" && deadlineAt !== undefined) {
    return at > plus(deadlineAt, maintenanceWindowMs);
  }
  const isShort = deadlineAt !== undefined || cause === "NodeShutdown";
  if (isShort) return at > plus(deadlineAt ?? noticedAt, staleAfterMs);
  return at > plus(noticedAt, cause === "LifecycleHook" ? longestExtendedMs : validForMs);
}
