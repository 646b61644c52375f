import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
  PreparedTask,
} from "../../src/contracts/action-runner.ts";
import type { Fields } from "../../src/core/json/json-field.ts";
import type { ActionKind } from "../../src/core/policy/action.ts";
import { type ErrorCode, LastcallError } from "../../src/errors.ts";

/** A receiver in memory: its state is a set of keys, and each call is recorded. */
export class FakeActionRunner implements ActionRunner {
  readonly #inEffect = new Map<string, string>();
  /** `apply slack`, in the order of arrival. */
  readonly calls: string[] = [];
  readonly tasks: ActionTask[] = [];
  problem: ActionProblem | undefined;
  fault: ErrorCode | undefined;
  /** When the receiver asks for a retry. */
  retryAfterMs: number | undefined;
  /** How many calls fail before the fault clears. */
  failsFor = Number.POSITIVE_INFINITY;
  /** Awaited in each call that changes something. */
  latency: (signal: AbortSignal) => Promise<void> = async () => {};
  /** Awaited in each read. */
  prepareLatency: (signal: AbortSignal) => Promise<void> = async () => {};
  /** Called at the start of each call. */
  onCall: (call: string, task: ActionTask) => void = () => {};
  readonly #kind: "Undoable" | "Message";

  constructor(kind: "Undoable" | "Message" = "Undoable") {
    this.#kind = kind;
  }

  get inEffect(): readonly string[] {
    return [...this.#inEffect.keys()].toSorted();
  }

  /** Restores the initial state, as if somebody else had undone everything. */
  forget(): void {
    this.#inEffect.clear();
  }

  async check(_how: unknown, signal: AbortSignal): Promise<ActionProblem | undefined> {
    signal.throwIfAborted();
    return this.problem;
  }

  async prepare(task: ActionTask<ActionKind>, signal: AbortSignal): Promise<Fields | undefined> {
    this.#begin("prepare", task, signal);
    await this.prepareLatency(signal);
    return this.#kind === "Message" ? undefined : { key: task.key, before: "nothing" };
  }

  async apply(task: PreparedTask<ActionKind>, signal: AbortSignal): Promise<ActionDone> {
    this.#begin("apply", task, signal);
    await this.latency(signal);
    signal.throwIfAborted();
    this.#throwFault();
    this.#inEffect.set(task.key, task.name);
    return { detail: `${task.how.kind} of ${task.target.node}`, reference: `ref ${task.key}` };
  }

  async undo(task: PreparedTask<ActionKind>, signal: AbortSignal): Promise<ActionDone> {
    this.#begin("undo", task, signal);
    await this.latency(signal);
    signal.throwIfAborted();
    this.#throwFault();
    this.#inEffect.delete(String(task.undo?.key));
    return { detail: "as it was" };
  }

  #begin(call: string, task: ActionTask, signal: AbortSignal): void {
    signal.throwIfAborted();
    this.calls.push(`${call} ${task.name}`);
    this.tasks.push(task);
    this.onCall(call, task);
  }

  #throwFault(): void {
    if (this.fault === undefined || this.failsFor <= 0) return;
    this.failsFor -= 1;
    const problem = "Cannot carry out the action: a test has it fail";
    throw new LastcallError(this.fault, problem, { retryAfterMs: this.retryAfterMs });
  }
}
