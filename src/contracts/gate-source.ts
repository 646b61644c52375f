import type { GateAnswer } from "../core/departure/snapshot.ts";
import type { Policy } from "../core/policy/policy.ts";

/** Asks what the gates of the policies depend upon outside the watched fleet. */
export interface GateSource {
  /**
   * Answers for every one of these policies with such gates; never throws: no answer is `Unknown`. An
   * answer may be some seconds old.
   */
  ask(
    policies: readonly Policy[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, GateAnswer>>>;
}
