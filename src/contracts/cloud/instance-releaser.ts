import type { ReleaseMode } from "../../core/policy/policy.ts";
import type { Instant } from "../../core/time/time.ts";

/**
 * The cloud's side of a planned departure. One implementation a cloud and the model cloud of
 * `src/sim`; contract suite: `test/contract/instance-releaser.contract.ts`.
 */
export interface InstanceReleaser {
  /**
   * Looks the machine of `providerID` up. `Absent` means the cloud answered that there is none;
   * a cloud that does not answer throws `LastcallError` with `retryable: true`.
   */
  describe(providerID: string, signal: AbortSignal): Promise<MachineState>;

  /**
   * Asks whether the machine could be released in this mode, and changes nothing: the machine is
   * looked up, and the permission is asked for where the cloud tells. Throws `LastcallError`: with
   * `retryable` where the cloud cannot be asked now, without where asking again cannot help.
   */
  check(question: ReleaseQuestion, signal: AbortSignal): Promise<Releasability>;

  /**
   * Releases the machine and waits until it is gone, in any of the modes but None. Idempotent: the
   * same `requestId` asks for the same thing once, a machine that is already gone is success, and a
   * machine whose id differs from `machineId` is not touched (`Replaced`). Throws `LastcallError`;
   * `retryable` says whether asking again can help. An abort rejects with the signal's reason and
   * leaves the cloud to finish; the same request takes it up again.
   */
  release(request: ReleaseRequest, signal: AbortSignal): Promise<ReleaseResult>;
}

/** A machine and the mode in which it is to go: what decides who releases it. */
export interface ReleasedMachine {
  readonly providerID: string;
  readonly mode: ReleaseMode;
}

/** Who releases such machines; undefined where there is nobody. */
export type ReleaserChoice = (machine: ReleasedMachine) => InstanceReleaser | undefined;

export type MachineState =
  | { readonly kind: "Absent" }
  | {
      readonly kind: "Present";
      /**
       * The cloud's own id of this machine; a machine recreated under the same name has another.
       */
      readonly id: string;
      readonly bornAt: Instant | undefined;
      /** It is at work, and nobody has had it go, as far as its cloud tells. */
      readonly running: boolean;
    };

export type ReleaseQuestion = Pick<ReleaseRequest, "providerID" | "mode">;

export type Releasability =
  | {
      readonly kind: "Possible";
      /** `Unknown`: the cloud does not tell; only the release itself will. */
      readonly permission: "Granted" | "Unknown";
    }
  | {
      readonly kind: "Impossible";
      /** What stands in the way and what to do about it: a sentence without its period. */
      readonly problem: string;
    };

export interface ReleaseRequest {
  readonly providerID: string;
  /** The id that `describe` gave before the release began. */
  readonly machineId: string;
  readonly mode: Exclude<ReleaseMode, "None">;
  /** A UUID; the Departure's uid, so that a restarted controller asks the same question. */
  readonly requestId: string;
  /**
   * Called between the last look at the machine and the request that releases it, and again before
   * each further attempt, so that nothing but that request follows it. What it throws ends the
   * release.
   */
  readonly lastLook: () => Promise<LastLookResult>;
}

/**
 * What the last look at the node came to. `Clear`: the machine may go now; `Waited`: it may, but
 * time has passed, and the machine is to be looked at again first; `Keep`: it is not to go.
 */
export type LastLookResult = "Clear" | "Waited" | "Keep";

export type ReleaseResult =
  | { readonly kind: "Released" }
  | { readonly kind: "AlreadyGone" }
  /** Another machine has taken the name: the one meant is gone, and the new one was left alone. */
  | { readonly kind: "Replaced" }
  /** The last look said so; the cloud was asked for nothing. */
  | { readonly kind: "Kept" };
