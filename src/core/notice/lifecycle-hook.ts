import type { NodeFacts } from "../cluster/node.ts";
import { type Departure, isLive, isNoticed, isUnderWay } from "../departure/departure.ts";
import type { HookResult, Policy } from "../policy/policy.ts";
import { hours, type Instant, type Millis, plus } from "../time/time.ts";
import { policyFor, reactionTo } from "./reaction.ts";

/** An instance that its group holds in a wait state, at launch or at termination. */
export interface LifecycleHook {
  readonly transition: "Launching" | "Terminating";
  /** The instance id, as in `InstanceNotice`. */
  readonly machine: string;
  readonly group: string;
  readonly name: string;
  /** Identifies this wait; absent: the group identifies it by the instance. */
  readonly token?: string | undefined;
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
  nodeOf(machine: string): NodeFacts | undefined;
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
export const longestExtendedMs: Millis = hours(48);

/** Decides whether a hook can be completed. */
export function hookStanding(hook: LifecycleHook, scene: HookScene): HookStanding {
  const isLaunch = hook.transition === "Launching";
  const longestMs = isLaunch ? longestWaitMs : (scene.longestMs ?? longestExtendedMs);
  if (scene.at > plus(hook.at, longestMs)) return "Over";
  const node = scene.nodeOf(hook.machine);
  if (isLaunch) {
    if (node?.ready === true) return "MayGoOn";
    const { joinWithinMs } = scene;
    if (joinWithinMs !== undefined && scene.at > plus(hook.at, joinWithinMs)) return "NeverJoined";
    return node === undefined ? "NoNode" : "Waiting";
  }
  // The node is gone before its machine.
  if (node === undefined) return "MayGoOn";
  // The drain decides, even if the policy has changed since.
  const leaving = leavingOf(node, scene);
  if (leaving.length === 0) return "LeftAlone";
  const isDone = (one: Departure) => isDrained(one, policyFor(one, node, scene.policies));
  return leaving.every(isDone) ? "MayGoOn" : "Waiting";
}

/**
 * The result to complete a hook with. For a terminating machine, the policy of its departure
 * decides, even if the node is gone.
 */
export function hookResult(
  { machine, transition }: LifecycleHook,
  scene: Pick<HookScene, "policies" | "nodeOf" | "departuresOf" | "departures">,
): HookResult {
  if (transition === "Launching") return "Continue";
  const node = scene.nodeOf(machine);
  const leaving = node === undefined ? lastOf(machine, scene.departures()) : leavingOf(node, scene);
  const policies = leaving.map((one) => policyFor(one, node, scene.policies));
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

/** The departure that the group waits for; not one that is only planned. */
function leavingOf(
  { uid }: NodeFacts,
  { departuresOf }: Pick<HookScene, "departuresOf">,
): readonly Departure[] {
  return departuresOf(uid).filter((one) => isLive(one) && (isNoticed(one) || isUnderWay(one)));
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
