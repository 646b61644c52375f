import { cloudOf, type NodeFacts } from "../cluster/node.ts";
import {
  type Departure,
  hasTakenMachine,
  isLive,
  isNoticed,
  isUnderWay,
} from "../departure/departure.ts";
import { type HookResult, type Policy, selectPolicy } from "../policy/policy.ts";
import { hours, type Instant, later, type Millis, minutes, plus } from "../time/time.ts";
import { policyFor, reactionTo } from "./interruption.ts";
import {
  callOf,
  isUndoingOf,
  type NoticeCall,
  type NoticeScene,
  noticeOrder,
  sourceOf,
} from "./node-notice.ts";
import { isNear, maintenanceWindowMs, type Notice } from "./notice.ts";

/** An instance that its group holds in a wait state, at launch or at termination. */
export interface LifecycleHook {
  readonly transition: "Launching" | "Terminating";
  /** The instance id, as in `InstanceNotice`. */
  readonly machine: string;
  readonly group: string;
  readonly name: string;
  /** Identifies this wait; absent: the group identifies it by the instance. */
  readonly token?: string | undefined;
  /**
   * The instance enters its group's warm pool, or is terminated in it: it is not in service, and
   * becomes no node by this transition.
   */
  readonly inWarmPool?: boolean | undefined;
  /** The instance leaves service for its group's warm pool, which keeps it for later. */
  readonly returnsToWarmPool?: boolean | undefined;
  /** When the wait started. */
  readonly at: Instant;
}

/**
 * `MayGoOn`: complete the hook; `Waiting`: not yet; `NoNode`: the new instance is not a node of the
 * cluster, or not yet; `LeftAlone`: the hook is not ours to complete; `Over`: the group has stopped
 * waiting long ago; `NeverJoined`: the new instance has not become a Ready node in time.
 */
export type HookStanding = "MayGoOn" | "Waiting" | "NoNode" | "LeftAlone" | "Over" | "NeverJoined";

export interface HookScene {
  readonly at: Instant;
  readonly policies: readonly Policy[];
  /** The nodes of a machine. */
  nodesOf(machine: string): readonly NodeFacts[];
  departuresOf(nodeUid: string): readonly Departure[];
  /** All departures, live and ended, to find that of a machine whose node is gone. */
  departures(): readonly Departure[];
  /** The longest wait of this hook including heartbeats; absent if unknown. */
  readonly longestMs?: Millis | undefined;
  /** How long a new instance may take to become a Ready node; absent: without limit. */
  readonly joinWithinMs?: Millis | undefined;
}

/**
 * The longest timeout of a hook, and the longest total with heartbeats. Source: Auto Scaling API,
 * PutLifecycleHook.
 */
const longestWaitMs: Millis = hours(2);
const longestExtendedMs: Millis = hours(48);

/** Decides whether a hook can be completed. */
export function hookStanding(hook: LifecycleHook, scene: HookScene): HookStanding {
  const isLaunch = hook.transition === "Launching";
  const longestMs = isLaunch ? longestWaitMs : (scene.longestMs ?? longestExtendedMs);
  if (scene.at > plus(hook.at, longestMs)) return "Over";
  const nodes = scene.nodesOf(hook.machine);
  if (isLaunch) {
    if (hook.inWarmPool === true || nodes.some(({ ready }) => ready)) return "MayGoOn";
    const { joinWithinMs } = scene;
    if (joinWithinMs !== undefined && scene.at > plus(hook.at, joinWithinMs)) return "NeverJoined";
    return nodes.length === 0 ? "NoNode" : "Waiting";
  }
  // The node is gone before its machine.
  if (nodes.length === 0) return "MayGoOn";
  // The drain decides, even if the policy has changed since.
  const leaving = nodes.flatMap((node) => leavingOf(node, scene));
  if (leaving.length === 0) return "LeftAlone";
  const isDone = ({ departure, node }: LeavingInstance) =>
    isDrained(departure, policyFor(departure, node, scene.policies));
  return leaving.every(isDone) ? "MayGoOn" : "Waiting";
}

/**
 * The result to complete a hook with. For a machine that is to be terminated, the policy of its
 * departure decides, even if the node is gone. One that its group keeps is never abandoned.
 */
export function hookResult(
  { machine, transition, returnsToWarmPool = false }: LifecycleHook,
  scene: Pick<HookScene, "policies" | "nodesOf" | "departuresOf" | "departures">,
): HookResult {
  if (transition === "Launching" || returnsToWarmPool) return "Continue";
  const nodes = scene.nodesOf(machine);
  const leaving =
    nodes.length === 0
      ? lastOf(machine, scene.departures()).map((departure) => ({ departure, node: undefined }))
      : nodes.flatMap((node) => leavingOf(node, scene));
  const policies = leaving.map(({ departure, node }) => policyFor(departure, node, scene.policies));
  return policies.some(({ instance }) => instance.lifecycleHook === "Abandon")
    ? "Abandon"
    : "Continue";
}

/** The departures by which a machine has left, without cancelled ones. */
function lastOf(machine: string, departures: readonly Departure[]): readonly Departure[] {
  return departures
    .filter(({ node: { providerID = "" }, status: { startedAt, outcome } }) => {
      const isIts = providerID === machine || providerID.endsWith(`/${machine}`);
      return (
        isIts && startedAt !== undefined && outcome !== "RolledBack" && outcome !== "Cancelled"
      );
    })
    .toSorted((a, b) => (a.status.startedAt ?? 0) - (b.status.startedAt ?? 0))
    .slice(-1);
}

interface LeavingInstance {
  readonly departure: Departure;
  readonly node: NodeFacts;
}

/** The departure that the group waits for; not one that is only planned. */
function leavingOf(
  node: NodeFacts,
  { departuresOf }: Pick<HookScene, "departuresOf">,
): readonly LeavingInstance[] {
  return departuresOf(node.uid)
    .filter((one) => isLive(one) && (isNoticed(one) || isUnderWay(one)))
    .map((departure) => ({ departure, node }));
}

/**
 * Whether only the end of the machine remains. With `Cordon` that is so from the cordon on; its
 * reason counts for that reaction only, because it stays in the status for a moment after a more
 * severe cause has arrived.
 */
function isDrained(departure: Departure, policy: Policy): boolean {
  const { phase, reason } = departure.status;
  if (phase === "Releasing") return true;
  return reason === "AwaitingMachine" && reactionTo(departure, policy) === "Cordon";
}

/** A notice about one machine of the fleet from a source outside the cluster. */
export interface InstanceNotice {
  /** A providerID, or its last segment if the cloud never reuses it, such as `i-0abc`. */
  readonly machine: string;
  /** The machine's region, if `machine` does not contain it and the cloud names it. */
  readonly region?: string | undefined;
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
  /** The node of the notice's `machine`, or one of several; undefined if there is none. */
  readonly node: NodeFacts | undefined;
}

/**
 * Decides what a notice requires of one node. An event reported by two sources is one departure.
 */
export function resolveNotice(
  { notice }: Pick<InstanceNotice, "notice">,
  scene: MachineScene,
): NoticeResolution {
  if (notice.withdrawn === true) return resolveWithdrawal(notice, scene);
  if (isStale(notice, scene.at)) return { kind: "Stale" };
  const { node } = scene;
  if (node === undefined || isAnothers(notice, node)) return { kind: "NoNode" };
  if (selectPolicy(node, scene.policies) === undefined) return { kind: "NotOwned" };
  if (!isNear(notice, scene.at)) return { kind: "TooEarly" };
  const former = scene.departuresOf(node.uid);
  if (former.some((one) => isDealtWith(one, notice))) return { kind: "Known" };
  if (former.some((one) => isUndoingOf(node, one))) return { kind: "Undoing" };
  const { departureNamed } = scene;
  return callOf(node, { notice, former, departureNamed }) ?? { kind: "Known" };
}

/**
 * A withdrawn event undoes the departure that it created, unless another notice has moved its
 * deadline since. If it has created none yet, an already withdrawn one is created, so that the
 * event is known when its delayed announcement is delivered later.
 */
function resolveWithdrawal(notice: Notice, scene: MachineScene): NoticeResolution {
  const { node } = scene;
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
 * one's launch. Where ids are never reused, it cannot be, and a Spot warning may be older than a
 * new Node; but a stopped instance may have been started again.
 */
function isAnothers({ cause, noticedAt }: Notice, node: NodeFacts): boolean {
  const { createdAt, instanceBornAt } = node;
  const staysItself = cloudOf(node)?.idReuse === "Never";
  if (staysItself && cause !== "NodeShutdown" && cause !== "Preempted") return false;
  return (instanceBornAt ?? createdAt ?? noticedAt) > noticedAt;
}

/** Whether the event has had its departure, or the machine left by a later one. */
function isDealtWith(departure: Departure, notice: Notice): boolean {
  if (departure.source === sourceOf(notice)) return true;
  const { endedAt } = departure.status;
  return endedAt !== undefined && endedAt >= notice.noticedAt && hasTakenMachine(departure);
}

/** Whether the notice expired long ago. */
export function isStale({ cause, deadlineAt, noticedAt }: Notice, at: Instant): boolean {
  // A machine that was shutting down is gone soon as well, or has been restarted.
  if (cause === "ScheduledMaintenance" && deadlineAt !== undefined) {
    return at > plus(deadlineAt, maintenanceWindowMs);
  }
  const isShort = deadlineAt !== undefined || cause === "NodeShutdown";
  if (isShort) return at > plus(deadlineAt ?? noticedAt, staleAfterMs);
  return at > plus(noticedAt, cause === "LifecycleHook" ? longestExtendedMs : validForMs);
}
