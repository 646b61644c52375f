import type { CloudName } from "../cloud/facts/known-clouds.ts";
import type { DetachState } from "../core/action/action-plan.ts";
import type { MachineState } from "../core/cluster/machine.ts";
import type { MachineNames } from "../core/cluster/machine-name.ts";
import type { InstanceNotice, LifecycleHook } from "../core/notice/instance-notice.ts";
import type { NoticeReading } from "../core/notice/notice.ts";
import type { HookResult, ReleaseMode } from "../core/policy/policy.ts";
import type { Instant, Millis } from "../core/time/time.ts";
import type { LastcallError } from "../errors.ts";

/**
 * Releases the machines of planned departures. Implemented for each cloud and by the model cloud of
 * `src/sim`; contract suite: `test/contract/instance-releaser.contract.ts`.
 */
export interface InstanceReleaser {
  /**
   * Looks up the machine of `providerID`. `Absent` means that the cloud responded that it does not
   * exist; if the cloud does not respond, throws a retryable `LastcallError`.
   */
  describe(providerID: string, signal: AbortSignal): Promise<MachineState>;

  /**
   * Checks without any change whether the machine could be released in this mode: looks up the
   * machine and, if the cloud supports it, the permission. Throws a `LastcallError` that is
   * `retryable` only if the cloud cannot be reached now.
   */
  check(question: ReleaseQuestion, signal: AbortSignal): Promise<Releasability>;

  /**
   * Releases the machine and waits until it is gone. Idempotent: repeating a `requestId` releases
   * once, a machine that is already gone is a success, and a machine whose id differs from
   * `machineId` is not touched (`Replaced`). Throws a `LastcallError`, `retryable` if another call
   * can succeed. An abort rejects with the signal's reason while the cloud continues; calling again
   * with the same request resumes waiting.
   */
  release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult>;
}

/** A machine and its release mode, which together determine the releaser. */
export interface ReleasedMachine {
  readonly providerID: string;
  readonly mode: ReleaseMode;
}

/** Selects the releaser of a machine; undefined if there is none. */
export type ReleaserChoice = (machine: ReleasedMachine) => InstanceReleaser | undefined;

export interface ReleaseQuestion extends Pick<ReleaseRequest, "providerID" | "mode"> {
  /** Whether the departure's actions take the machine out of its group before the release. */
  readonly detach?: DetachState | undefined;
}

export type Releasability =
  | {
      readonly kind: "Possible";
      /** `Unknown`: only the release itself will show it. */
      readonly permission: "Granted" | "Unknown";
      /** As in `MachineState`. */
      readonly names?: MachineNames | undefined;
    }
  | {
      readonly kind: "Impossible";
      /** What prevents it and how to fix that: a sentence without its period. */
      readonly problem: string;
    };

export interface ReleaseRequest {
  readonly providerID: string;
  /** The id that `describe` returned before the release started. */
  readonly machineId: string;
  readonly mode: Exclude<ReleaseMode, "None">;
  /** A UUID: the Departure's uid, so that a restarted controller repeats the same request. */
  readonly requestId: string;
  /**
   * The final check, called immediately before each request that releases the machine. If it
   * throws, the release fails with its error.
   */
  readonly lastLook: () => Promise<LastLookResult>;
  /**
   * Whether an action of the departure has, or may have, taken the machine out of its group. Called
   * before each request that releases it, because the action may end meanwhile. Absent: it has not.
   */
  readonly isOutOfGroup?: (() => boolean) | undefined;
}

/**
 * The result of the final check. `Clear`: release the machine now. `Waited`: release it, but look
 * up the machine again first, because time has passed. `Keep`: do not release it.
 */
export type LastLookResult = "Clear" | "Waited" | "Keep";

export type ReleaseResult =
  | { readonly kind: "Released" }
  | { readonly kind: "AlreadyGone" }
  /** The machine is gone and another one has its name, which was not touched. */
  | { readonly kind: "Replaced" }
  /** The final check returned `Keep`; the cloud received no request. */
  | { readonly kind: "Kept" };

/**
 * When machines were launched, as the cloud reports it: a Node object may be older than the machine
 * behind it. One implementation per cloud, and the model cloud; contract suite:
 * `test/contract/launch-times.contract.ts`.
 */
export interface LaunchTimes {
  /**
   * The launch times of the machines that these providerIDs identify now, with few requests for all
   * of them. A machine that does not exist, or belongs to another cloud, is missing from the
   * result. Failed requests are listed in `faults`, next to the results. Rejects only with the
   * signal's reason.
   */
  launchTimesOf(providerIDs: readonly string[], signal: AbortSignal): Promise<LaunchTimeReading>;
}

export interface LaunchTimeReading {
  /** By providerID. */
  readonly bornAt: ReadonlyMap<string, Instant>;
  readonly faults: readonly LastcallError[];
}

/** What a cloud offers for its machines. */
export interface MachineCloud {
  readonly releaser: InstanceReleaser;
  readonly launchTimes: LaunchTimes;
  /**
   * Returns the providerIDs of all running machines in the groups of the given ones, including
   * those, and of all that are known to belong to the same cluster; each cloud has its limits.
   * Undefined if this cloud does not support it. Throws CLOUD_*.
   */
  readonly groupsOf?: (
    providerIDs: readonly string[],
    signal: AbortSignal,
  ) => Promise<readonly string[]>;
}

/**
 * Completes and extends the waits of a cloud's groups at lifecycle hooks. Implemented by
 * `src/cloud/aws/auto-scaling.ts`; contract suite: `test/contract/lifecycle-hooks.contract.ts`. All
 * methods throw `LastcallError` `CLOUD_*`, and the signal's reason when it aborts.
 */
export interface LifecycleHooks {
  /** Tells the group to continue with the instance, or to terminate it. */
  complete(hook: LifecycleHook, result: HookResult, signal: AbortSignal): Promise<HookEnd>;
  /** Makes the group wait for another `heartbeatMs`, counted from now; `Completed` if it does. */
  extend(hook: LifecycleHook, signal: AbortSignal): Promise<HookEnd>;
  /** How long the hook waits; undefined if there is no such group or hook. */
  limits(hook: LifecycleHook, signal: AbortSignal): Promise<HookLimits | undefined>;
}

/**
 * `Over`: the group no longer waited, or something else has completed the hook; `NotFound`: there
 * is no such group or hook, or not where we looked.
 */
export type HookEnd = "Completed" | "Over" | "NotFound";

export interface HookLimits {
  /** The wait ends after this time without a heartbeat. */
  readonly heartbeatMs: Millis;
  /** The wait ends after this time, however many heartbeats there are. */
  readonly longestMs: Millis;
}

/**
 * Notices for any machine of the fleet from outside the cluster: a queue, a list of operations.
 * Only the leader runs it. A feed may deliver the same notice any number of times.
 */
export interface NoticeFeed {
  /**
   * Runs until the signal aborts, then resolves. Never rejects: errors are passed to `onError`,
   * and the feed continues.
   */
  run(listener: FeedListener, signal: AbortSignal): Promise<void>;
}

export interface FeedListener {
  /**
   * Resolves with the outcome once everything that the notice requires is written to the cluster.
   * Rejects if it could not be written: the notice then counts as not delivered, and has to be
   * delivered again.
   */
  onNotice(instanceNotice: InstanceNotice): Promise<NoticeDelivery>;
  /**
   * Resolves when the waiting group continues, or does not have to be told to. Rejects if it could
   * not be told, which has to be retried. This may take minutes or hours.
   */
  onHook(hook: LifecycleHook): Promise<HookDelivery>;
  onError(error: LastcallError): void;
}

/**
 * `Taken`: a Departure exists for it, or did; `NoNode`: the machine is not a node of the cluster;
 * `NotOwned`: no policy selects its node; `TooEarly`: deliver it again at `actFromAt`; `Stale`: it
 * expired long ago.
 */
export type NoticeDelivery = "Taken" | "NoNode" | "NotOwned" | "TooEarly" | "Stale";

/**
 * `Ended`: the group no longer waits; `NoNode`: the new instance is not a node of the cluster yet,
 * deliver it again; `LeftAlone`: the hook is not ours to complete.
 */
export type HookDelivery = "Ended" | "NoNode" | "LeftAlone";

/**
 * One cloud's notices for the machine that we run on. One implementation per cloud; contract suite:
 * `test/contract/notice-source.contract.ts`.
 */
export interface NoticeSource {
  readonly cloud: CloudName;
  /**
   * The sources of this cloud's notices, such as `aws/rebalance`. Each always delivers its whole
   * state, independent of the others.
   */
  readonly channels: readonly string[];

  /**
   * Reads every channel until the signal aborts, then resolves. Never rejects: a metadata service
   * that is unreachable, slow or returns garbage is reported to `onError`, and retried.
   */
  run(sink: NoticeSink, signal: AbortSignal): Promise<void>;

  /**
   * Tells the cloud that it need not wait any longer for this event. Only for a drained node,
   * because it shortens the remaining time. Absent if the cloud does not support this. Throws
   * `LastcallError` `CLOUD_UNREACHABLE` or `CLOUD_REFUSED`.
   */
  acknowledge?(eventId: string, signal: AbortSignal): Promise<void>;
}

export interface NoticeSink {
  /** The current state of a channel, even if it has not changed. */
  onReading(heard: NoticeSourceReading): void;
  /** An error on a channel, which continues. */
  onError(channel: string, error: LastcallError): void;
  /** The loop of a channel has started another round. */
  onTurn(channel: string): void;
}

export interface NoticeSourceReading {
  readonly channel: string;
  readonly reading: Extract<NoticeReading, { readonly kind: "Read" }>;
  /** In the cloud's time (`cloudTime` in core). */
  readonly at: Instant;
  /** Our clock minus the cloud's, if the two disagree. */
  readonly skewMs?: number | undefined;
}
