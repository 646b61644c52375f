import type { Fields } from "../core/json/json-field.ts";
import type { ActionKind, ActionOf, SecretRef } from "../core/policy/action.ts";
import type { Instant } from "../core/time/time.ts";
import type { ErrorCode } from "../errors.ts";

/**
 * Carries out the actions of one kind. Made by `src/actions` for what is spoken to over HTTP, and
 * by `src/cloud/aws` for AWS; the fake of `test/support/fake-action-runner.ts`; contract suite:
 * `test/contract/action-runner.contract.ts`.
 *
 * Every call may come twice, also from another process: the next leader goes on with an action that
 * it finds begun. All but messages are therefore idempotent. A fault is a `LastcallError`, whose
 * `retryable` says whether another attempt can help; an abort rejects with the signal's reason. No
 * message names a secret.
 */
export interface ActionRunner<Kind extends ActionKind = ActionKind> {
  /**
   * What is wrong with an action as it stands in a policy, as far as that can be found out before a
   * departure: an unknown ARN, a missing permission or Secret, a host that is not allowed.
   * Templates are not rendered here. Changes nothing. Throws where nobody can be asked now.
   */
  check(how: ActionOf<Kind>, signal: AbortSignal): Promise<ActionProblem | undefined>;

  /**
   * Looks up what `apply` will change and gives what it takes to undo that, which is written into
   * the status before `apply` is called. Changes nothing. Undefined: there is nothing to undo.
   */
  prepare(task: ActionTask<Kind>, signal: AbortSignal): Promise<Fields | undefined>;

  /** Does it. `task.undo` is what `prepare` gave, here or in a process before this one. */
  apply(task: PreparedTask<Kind>, signal: AbortSignal): Promise<ActionDone>;

  /**
   * Puts back what `apply` may have changed, wholly or in part; what is as it was already, or is
   * gone, is success. Called only with an undo record.
   */
  undo(task: PreparedTask<Kind>, signal: AbortSignal): Promise<ActionDone>;
}

/** One action of one departure, with its templates rendered (`core/action/render.ts`). */
export interface ActionTask<Kind extends ActionKind = ActionKind> {
  /** Its name in the policy. */
  readonly name: string;
  readonly how: ActionOf<Kind>;
  readonly target: ActionTarget;
  /** The name of the Departure, for messages and log lines. */
  readonly departure: string;
  /** The same at each attempt, in any process, and at no other action: for idempotency. */
  readonly key: string;
  /**
   * When this attempt is aborted at the latest. A runner that only waits for the end of something
   * it has done ends in time itself, and says how far it has come.
   */
  readonly endsAt: Instant;
  /** What earlier actions of the departure came to, oldest first: a message may answer one. */
  readonly earlier: readonly EarlierAction[];
}

export interface PreparedTask<Kind extends ActionKind = ActionKind> extends ActionTask<Kind> {
  readonly undo: Fields | undefined;
  /**
   * Has a record kept in the place of `undo`, before `apply` changes what it has found meanwhile;
   * absent at an undo.
   */
  readonly keep?: ((undo: Fields) => Promise<void>) | undefined;
}

export interface EarlierAction {
  readonly name: string;
  readonly kind: ActionKind;
  readonly reference: string;
}

/** The machine that the departure is about. */
export interface ActionTarget {
  readonly node: string;
  readonly nodeUid: string;
  readonly providerID: string | undefined;
  /** The machine as its cloud names it: `i-0abc` on EC2, a name on the others. */
  readonly instanceId: string | undefined;
  /** Asked of the cluster where an action needs them. */
  readonly addresses: (signal: AbortSignal) => Promise<MachineAddresses>;
}

export interface MachineAddresses {
  /** The machine's own. */
  readonly node: readonly string[];
  /** Those of the pods on it that have an address of their own. */
  readonly pods: readonly string[];
}

export interface ActionDone {
  /** What was done, in a few words: `out of 3 target groups`. */
  readonly detail: string;
  /** What the receiver calls it; kept in the status. */
  readonly reference?: string | undefined;
}

/** What is wrong with an action, before any departure. */
export interface ActionProblem {
  readonly code: ErrorCode;
  /** The field under the action: `sns.topicArn`. */
  readonly field: string;
  readonly found: string;
  readonly wanted: string;
}

/**
 * The runner of a kind, loaded when it is first asked for; undefined where this process has none.
 */
export type ActionRunners = <Kind extends ActionKind>(
  kind: Kind,
) => Promise<ActionRunner<Kind> | undefined>;

/** What the controller carries actions out with. */
export interface ActionPorts {
  readonly runners: ActionRunners;
  /** Asks the cluster for the addresses of a node and of the pods on it. */
  readonly addresses: (node: string, signal: AbortSignal) => Promise<MachineAddresses>;
}

/** Reads one key of a Secret in the namespace of Lastcall, each time afresh. */
export interface SecretReader {
  /** Throws `SECRET_MISSING` where there is no such Secret or key, or it may not be read. */
  read(ref: SecretRef, signal: AbortSignal): Promise<string>;
}
