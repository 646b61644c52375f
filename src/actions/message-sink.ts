import type {
  ActionDone,
  ActionProblem,
  ActionRunner,
  ActionTask,
} from "../contracts/action-runner.ts";
import type { ActionKind, ActionOf } from "../core/policy/action.ts";
import type { SinkTools } from "./action-sink.ts";

/** What one kind of message differs in. */
export interface MessageSink<Kind extends ActionKind> {
  check(how: ActionOf<Kind>, about: SinkCall): Promise<ActionProblem | undefined>;
  send(task: ActionTask<Kind>, about: SinkCall): Promise<ActionDone>;
}

export interface SinkCall {
  readonly tools: SinkTools;
  readonly signal: AbortSignal;
}

/** A sent message cannot be recalled: there is nothing to prepare, and nothing to undo. */
export function messageRunner<Kind extends ActionKind>(
  sink: MessageSink<Kind>,
  tools: SinkTools,
): ActionRunner<Kind> {
  return {
    check: (how, signal) => sink.check(how, { tools, signal }),
    prepare: async (_, signal) => {
      signal.throwIfAborted();
      return undefined;
    },
    apply: async (task, signal) => {
      signal.throwIfAborted();
      return sink.send(task, { tools, signal });
    },
    undo: async () => ({ detail: "a message stays" }),
  };
}
