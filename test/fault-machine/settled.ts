import { eventLoopTurn } from "../../src/runtime/real-clock.ts";

/** So often the event loop has its turn, so that a test runner still gets its messages. */
const turnEvery = 1000;

let calls = 0;

/**
 * Resolves once all promise work has settled. A tick that is asked for within a microtask comes
 * after the last of them, and costs a tenth of a turn of the event loop, which polls for I/O: the
 * model and the controller have none.
 */
export function settled(): Promise<void> {
  calls += 1;
  if (calls % turnEvery === 0) return eventLoopTurn();
  return new Promise((resolve) => process.nextTick(resolve));
}
