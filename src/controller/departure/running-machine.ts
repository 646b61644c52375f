import type { Clock } from "../../contracts/clock.ts";
import type { MachineState, ReleasedMachine, ReleaserChoice } from "../../contracts/cloud.ts";
import type { Departure } from "../../core/departure/departure.ts";
import type { Policy } from "../../core/policy/policy.ts";
import { releaseModeOf } from "../../core/policy/release-answer.ts";
import { type Millis, millis, seconds } from "../../core/time/time.ts";

export interface RunningMachinesOptions {
  readonly releaserFor: ReleaserChoice;
  readonly clock: Clock;
}

/** A cloud that does not respond within this time says nothing, whoever else it is asked about. */
const answerWithinMs: Millis = seconds(5);

/** Why a departure ends whose Node is gone, although its machine runs. */
export const nodeDeleted = "its Node was deleted, and its machine still runs";

/** Asks clouds about machines whose Nodes are gone; they have one time for all the answers. */
export class RunningMachines {
  readonly #options: RunningMachinesOptions;
  /** Until when the cloud may answer (monotonic); counts from the first question. */
  #patientUntilMs: number | undefined;

  constructor(options: RunningMachinesOptions) {
    this.#options = options;
  }

  /**
   * Whether the cloud shows that the departure's machine runs, so that somebody has deleted its
   * Node. False if it cannot be known, as when the cloud has made a machine of that name since.
   */
  async has(
    { node, createdAt }: Departure,
    { instance }: Policy,
    signal: AbortSignal,
  ): Promise<boolean> {
    const mode = releaseModeOf({ labels: {} }, instance);
    const { providerID } = node;
    if (mode === "None" || providerID === undefined || createdAt === undefined) return false;
    const state = await this.#describe({ providerID, mode }, signal);
    if (state?.kind !== "Present" || !state.running) return false;
    return state.bornAt !== undefined && state.bornAt <= createdAt;
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
