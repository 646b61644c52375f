import type { NodeFacts } from "../cluster/node.ts";
import { type Departure, isLive, isNoticed, isUnderWay } from "../departure/departure.ts";
import type { HookResult, Policy } from "../policy/policy.ts";
import { hours, type Instant, type Millis, plus } from "../time/time.ts";
import { policyFor, reactionTo } from "./reaction.ts";

/** An instance that a group holds back, before it is put to work or before it is taken. */
export interface LifecycleHook {
  readonly transition: "Launching" | "Terminating";
  /** The instance's id, as in `InstanceNotice`. */
  readonly machine: string;
  readonly group: string;
  readonly name: string;
  /** Of this one wait; absent: the group finds it by the instance. */
  readonly token?: string | undefined;
  /** Since when it waits. */
  readonly at: Instant;
}

/**
 * `MayGoOn`: what was to be done first is done; `Waiting`: it is not; `NoNode`: the new instance is
 * no node of the cluster, or not yet; `LeftAlone`: nobody here makes its node leave; `Over`: the
 * group has given the wait up long ago; `NeverJoined`: the new instance has had time enough to
 * become a ready node.
 */
export type HookStanding = "MayGoOn" | "Waiting" | "NoNode" | "LeftAlone" | "Over" | "NeverJoined";

export interface HookScene {
  readonly at: Instant;
  readonly policies: readonly Policy[];
  nodeOf(machine: string): NodeFacts | undefined;
  departuresOf(nodeUid: string): readonly Departure[];
  /** Every departure, for a machine whose node is gone; those that have ended, too. */
  departures(): readonly Departure[];
  /** How long this hook waits at most, with every heartbeat; absent: it is not known. */
  readonly longestMs?: Millis | undefined;
  /** How long a new instance may take to become a ready node; absent: for ever. */
  readonly joinWithinMs?: Millis | undefined;
}

/**
 * The longest that a hook can be set to wait, and the longest to which it can be extended. Source:
 * Auto Scaling API, PutLifecycleHook.
 */
const longestWaitMs: Millis = hours(2);
export const longestExtendedMs: Millis = hours(48);

/** Whether a group may go on with an instance that a hook holds back. */
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
  // It left before its machine did.
  if (node === undefined) return "MayGoOn";
  // The drain decides, whatever has become of its policy since.
  const leaving = leavingOf(node, scene);
  if (leaving.length === 0) return "LeftAlone";
  const isDone = (one: Departure) => isDrained(one, policyFor(one, node, scene.policies));
  return leaving.every(isDone) ? "MayGoOn" : "Waiting";
}

/**
 * How a hook is completed that may go on: that of a machine which ends as the policy of its
 * departure says, be its node there or gone.
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

/** By which a machine has left; one that was called off has not taken it away. */
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

/** One that only waits for its time is not what a group waits for. */
function leavingOf(
  { uid }: NodeFacts,
  { departuresOf }: Pick<HookScene, "departuresOf">,
): readonly Departure[] {
  return departuresOf(uid).filter((one) => isLive(one) && (isNoticed(one) || isUnderWay(one)));
}

/**
 * Nothing is left to do but for the machine to go; with `Cordon` that is so from the cordon on. The
 * word for that counts with that rule alone: it stands in the ledger for a moment after a graver
 * cause has come.
 */
function isDrained(departure: Departure, policy: Policy): boolean {
  const { phase, reason } = departure.status;
  if (phase === "Releasing") return true;
  return reason === "AwaitingMachine" && reactionTo(departure, policy) === "Cordon";
}
