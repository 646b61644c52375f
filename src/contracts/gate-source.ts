import type { Policy } from "../core/policy.ts";
import type { GateAnswer } from "../core/snapshot.ts";

/** Asks what the gates of the policies depend upon outside the watched fleet. */
export interface GateSource {
  /** Answers for every policy with such gates; never throws: no answer is `Unknown`. */
  ask(
    policies: readonly Policy[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, GateAnswer>>>;
}
