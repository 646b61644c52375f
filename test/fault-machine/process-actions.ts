import type {
  ActionDone,
  ActionPorts,
  ActionRunner,
  ActionTask,
  PreparedTask,
} from "../../src/contracts/action-runner.ts";
import type { Fields } from "../../src/core/json/json-field.ts";
import type { ProcessClock } from "./process-clock.ts";
import type { Surroundings } from "./surroundings.ts";

interface ProcessActionsOptions {
  readonly stage: Surroundings;
  readonly process: string;
  readonly clock: ProcessClock;
}

/** The receivers of actions as one process reaches them: what was applied can be undone. */
class ProcessActions implements Pick<ActionRunner, keyof ActionRunner> {
  readonly #options: ProcessActionsOptions;

  constructor(options: ProcessActionsOptions) {
    this.#options = options;
  }

  check(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  prepare({ key }: ActionTask): Promise<Fields> {
    return Promise.resolve({ key });
  }

  apply(task: PreparedTask, signal: AbortSignal): Promise<ActionDone> {
    return this.#call("apply", task, signal);
  }

  undo(task: PreparedTask, signal: AbortSignal): Promise<ActionDone> {
    return this.#call("undo", task, signal);
  }

  async #call(
    call: "apply" | "undo",
    { name, departure, key }: PreparedTask,
    signal: AbortSignal,
  ): Promise<ActionDone> {
    const { stage, process, clock } = this.#options;
    await clock.awake();
    signal.throwIfAborted();
    stage.tell({ kind: "Action", process, call, name, departure, key });
    return { detail: call };
  }
}

export function processActions(options: ProcessActionsOptions): ActionPorts {
  const runner = new ProcessActions(options);
  return {
    runners: async () => runner as never,
    addresses: async () => ({ node: [], pods: [] }),
  };
}
