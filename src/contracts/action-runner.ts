import type { Fields } from "../core/json/json-field.ts";
import type { ActionKind, ActionOf, SecretRef } from "../core/policy/action.ts";
import type { Instant } from "../core/time/time.ts";
import type { ErrorCode } from "../errors.ts";

/**
 * Runs the actions of one kind. Implemented by `src/actions` for HTTP receivers and by
 * `src/cloud/aws` for AWS; faked by `test/support/fake-action-runner.ts`; contract suite:
 * `test/contract/action-runner.contract.ts`.
 *
 * Every call may be repeated, also by another process: a new leader resumes the actions it finds
 * started. Everything except sending a message is therefore idempotent. Failures are
 * `LastcallError`s, and `retryable` says whether another attempt can succeed; an abort rejects with
 * the signal's reason. No message contains a secret.
 */
export interface ActionRunner<Kind extends ActionKind = ActionKind> {
  /**
   * Finds what is wrong with an action in a policy before any departure needs it: an unknown ARN, a
   * missing permission or Secret, a host that is not allowed. Does not render templates and changes
   * nothing. Throws if the receiver cannot be reached now.
   */
  check(how: ActionOf<Kind>, signal: AbortSignal): Promise<ActionProblem | undefined>;

  /**
   * Looks up what `apply` will change and returns the record that undoes it, which is written to
   * the status before `apply` is called. Changes nothing. Undefined if there is nothing to undo.
   */
  prepare(task: ActionTask<Kind>, signal: AbortSignal): Promise<Fields | undefined>;

  /** Performs the action. `task.undo` was returned by `prepare`, maybe in an earlier process. */
  apply(task: PreparedTask<Kind>, signal: AbortSignal): Promise<ActionDone>;

  /**
   * Reverts what `apply` changed, even if it changed only part of it. Succeeds if nothing has to be
   * reverted or the target is gone. Called only with an undo record.
   */
  undo(task: PreparedTask<Kind>, signal: AbortSignal): Promise<ActionDone>;
}

/** One action of one departure, with its templates rendered (`core/action/template.ts`). */
export interface ActionTask<Kind extends ActionKind = ActionKind> {
  /** Its name in the policy. */
  readonly name: string;
  readonly how: ActionOf<Kind>;
  readonly target: ActionTarget;
  /** The name of the Departure, for messages and log lines. */
  readonly departure: string;
  /** Idempotency key: the same for every attempt in any process, different for other actions. */
  readonly key: string;
  /**
   * When its current run started, which tells it from a run that was undone before; the undo has
   * the same. Absent if nothing is undone automatically.
   */
  readonly startedAt?: Instant | undefined;
  /**
   * This attempt is aborted at this instant. A runner that only waits for something to finish ends
   * before it and reports the progress so far.
   */
  readonly endsAt: Instant;
  /** Results of the departure's earlier actions, oldest first: a message may reply to one. */
  readonly earlier: readonly EarlierAction[];
}

export interface PreparedTask<Kind extends ActionKind = ActionKind> extends ActionTask<Kind> {
  readonly undo: Fields | undefined;
  /**
   * Replaces the stored `undo` record. `apply` calls it before it changes anything that `prepare`
   * did not find. Absent during an undo.
   */
  readonly keep?: ((undo: Fields) => Promise<void>) | undefined;
}

export interface EarlierAction {
  readonly name: string;
  readonly kind: ActionKind;
  readonly reference: string;
}

/** The machine that departs. */
export interface ActionTarget {
  readonly node: string;
  readonly nodeUid: string;
  readonly providerID: string | undefined;
  /** The machine as its cloud names it: `i-0abc` on EC2, a name on the others. */
  readonly instanceId: string | undefined;
  /** The machine's region, if it is known although no providerID contains it. */
  readonly region?: string | undefined;
  /** Looked up in the cluster only if an action needs them. */
  readonly addresses: (signal: AbortSignal) => Promise<MachineAddresses>;
}

export interface MachineAddresses {
  /** Addresses of the machine itself. */
  readonly node: readonly string[];
  /** Addresses of its pods that are not on the host network. */
  readonly pods: readonly string[];
}

export interface ActionDone {
  /** What was done, in a few words: `out of 3 target groups`. */
  readonly detail: string;
  /** The receiver's identifier for it, kept in the status. */
  readonly reference?: string | undefined;
}

/** A problem with an action that was found before any departure. */
export interface ActionProblem {
  readonly code: ErrorCode;
  /** The field under the action: `sns.topicArn`. */
  readonly field: string;
  readonly found: string;
  readonly wanted: string;
}

/**
 * Returns the runner of a kind and loads it on first use; undefined if this process has none.
 */
export type ActionRunners = <Kind extends ActionKind>(
  kind: Kind,
) => Promise<ActionRunner<Kind> | undefined>;

/** What the controller needs to run actions. */
export interface ActionPorts {
  readonly runners: ActionRunners;
  /** Looks up the addresses of a node and of its pods in the cluster. */
  readonly addresses: (node: string, signal: AbortSignal) => Promise<MachineAddresses>;
}

/** Reads one key of a Secret in Lastcall's namespace. Does not cache. */
export interface SecretReader {
  /** Throws `SECRET_MISSING` if the Secret or the key does not exist or cannot be read. */
  read(ref: SecretRef, signal: AbortSignal): Promise<string>;
}
