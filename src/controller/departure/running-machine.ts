import type { Clock } from "../../contracts/clock.ts";
import type { MachineState, ReleasedMachine, ReleaserChoice } from "../../contracts/cloud.ts";
import { existedAt } from "../../core/cluster/machine-age.ts";
import { type Departure, isNoticed } from "../../core/departure/departure.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
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

  /**
   * What ended a departure, as far as there is evidence. A machine that is gone was taken by the
   * cloud; if the cloud shows that it runs, it has only been rebooted, or somebody has deleted its
   * Node. A notice stands, whatever the cloud shows.
   */
  async withEvidence<Result extends PhaseResult>(
    result: Result,
    about: Subject,
    signal: AbortSignal,
  ): Promise<Result> {
    const { event, reason } = result;
    const isReplaced = event === "MachineReplaced" && reason === "MachineReplaced";
    if (isNoticed(about.departure) || !(isReplaced || event === "NodeGone")) return result;
    if (!(await this.#has(about, signal))) return result;
    if (isReplaced) return { ...result, reason: "MachineRebooted" };
    const detail = "its Node was deleted, and its machine still runs";
    return { ...result, event: "Cancelled", reason: "CancelledByPerson", detail };
  }

  /** False if it cannot be known, as when the cloud has made a machine of that name since. */
  async #has({ departure, policy }: Subject, signal: AbortSignal): Promise<boolean> {
    const { node, createdAt } = departure;
    const { providerID } = node;
    if (providerID === undefined || createdAt === undefined) return false;
    const mode = releaseModeOf({ labels: {} }, policy.instance);
    // A cloud that must not release the machine may be asked about it.
    const asked = { providerID, mode: mode === "None" ? "Recreate" : mode } as const;
    const state = await this.#describe(asked, signal);
    if (state?.kind !== "Present" || !state.running) return false;
    const { bornAt, asOf } = state;
    if (bornAt === undefined) return false;
    return existedAt(createdAt, { bornAt, asOf }, this.#options.clock.now());
  }

  async #describe(
    machine: ReleasedMachine,
    signal: AbortSignal,
  ): Promise<MachineState | undefined> {
    const { releaserFor, clock } = this.#options;
    this.#patientUntilMs ??= clock.monotonic() + answerWithinMs;
    const leftMs = this.#patientUntilMs - clock.monotonic();
    if (leftMs <= 0) return undefined;
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    const unknown = () => undefined;
    const late = clock.sleep(millis(leftMs), stop).then(unknown, unknown);
    const answer = releaserFor(machine)?.describe(machine.providerID, stop).catch(unknown);
    const state = await Promise.race([answer, late]);
    over.abort();
    return state;
  }
}
