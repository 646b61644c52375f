import type { Clock } from "../../contracts/clock.ts";
import type { ReleasedMachine, ReleaserChoice } from "../../contracts/cloud.ts";
import type { Departure } from "../../core/departure/departure.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import { type CloudAnswer, inTheLightOf, isInDoubt } from "../../core/notice/machine-evidence.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { releaseModeOf } from "../../core/policy/release-answer.ts";
import { type Millis, millis, seconds } from "../../core/time/time.ts";

export interface RunningMachinesOptions {
  readonly releaserFor: ReleaserChoice;
  readonly clock: Clock;
}

interface Subject {
  readonly departure: Departure;
  readonly policy: Policy;
}

/** A cloud that does not respond within this time says nothing, whoever else it is asked about. */
const answerWithinMs: Millis = seconds(5);

/** Asks clouds about machines whose Nodes are gone, or have another boot, in one time for all. */
export class RunningMachines {
  readonly #options: RunningMachinesOptions;
  /** Until when the cloud may answer (monotonic); counts from the first question. */
  #patientUntilMs: number | undefined;

  constructor(options: RunningMachinesOptions) {
    this.#options = options;
  }

  /** What ended a departure, as far as there is evidence. */
  async withEvidence<Result extends PhaseResult>(
    result: Result,
    { departure, policy }: Subject,
    signal: AbortSignal,
  ): Promise<Result> {
    if (!isInDoubt(result, departure)) return result;
    const { providerID = "" } = departure.node;
    const mode = releaseModeOf({ labels: {} }, policy.instance);
    // A cloud that must not release the machine may be asked about it.
    const asked = { providerID, mode: mode === "None" ? "Recreate" : mode } as const;
    const answer = await this.#describe(asked, signal);
    return inTheLightOf(answer, result, { departure, now: this.#options.clock.now() });
  }

  async #describe(machine: ReleasedMachine, signal: AbortSignal): Promise<CloudAnswer> {
    const { releaserFor, clock } = this.#options;
    const releaser = releaserFor(machine);
    if (releaser === undefined) return "NobodyToAsk";
    this.#patientUntilMs ??= clock.monotonic() + answerWithinMs;
    const leftMs = this.#patientUntilMs - clock.monotonic();
    if (leftMs <= 0) return "Silent";
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    const unknown = () => "Silent" as const;
    const late = clock.sleep(millis(leftMs), stop).then(unknown, unknown);
    const answer = releaser.describe(machine.providerID, stop).catch(unknown);
    const state = await Promise.race([answer, late]);
    over.abort();
    return state;
  }
}
