import { setTimeout as pause } from "node:timers/promises";
import { vi } from "vitest";

export interface StoppedTimers {
  /**
   * Lets the timers pass until the work has settled, ten times as fast as they would: slow enough
   * for the requests of a limit that is not meant to be over.
   */
  passUntil<T>(work: Promise<T>): Promise<T>;
  /** How much has passed. */
  readonly passedMs: number;
}

const stepMs = 100;

/**
 * Stops the timers of this process, but not its sockets: however busy the machine is, no limit is
 * over while a test waits for requests. `vi.useRealTimers()` lets them run again.
 */
export function stopTimers(): StoppedTimers {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  let passedMs = 0;
  return {
    async passUntil(work) {
      let isSettled = false;
      const settle = () => {
        isSettled = true;
      };
      work.then(settle, settle);
      while (!isSettled) {
        await pause(stepMs / 10);
        if (isSettled) break;
        await vi.advanceTimersByTimeAsync(stepMs);
        passedMs += stepMs;
      }
      return work;
    },
    get passedMs() {
      return passedMs;
    },
  };
}
