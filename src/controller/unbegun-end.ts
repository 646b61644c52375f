import type { Clock } from "../contracts/clock.ts";
import type { MachineState } from "../contracts/cloud.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { Decision } from "../core/departure/decision.ts";
import type { Departure } from "../core/departure/departure.ts";
import { interruptionOf } from "../core/notice/interruption.ts";
import type { Policy } from "../core/policy/policy.ts";
import { releaseModeOf } from "../core/policy/release-answer.ts";
import { type Millis, millis, seconds } from "../core/time/time.ts";
import type { Executor } from "./executor.ts";

type Note = Extract<Decision, { kind: "Note" }>;

export interface UnbegunOptions {
  readonly executor: Pick<Executor, "describe">;
  readonly clock: Clock;
  readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
}

/** A cloud that does not respond within this time says nothing, whoever else it is asked about. */
const answerWithinMs: Millis = seconds(5);

/** The ends, found in one pass, of departures that have not started. */
export class UnbegunEnds {
  readonly #options: UnbegunOptions;
  /** Until when the cloud may answer (monotonic); counts from the first question. */
  #patientUntilMs: number | undefined;

  constructor(options: UnbegunOptions) {
    this.#options = options;
  }

  /**
   * The end of a departure as far as there is evidence. Undefined if a read of the API server shows
   * that its node is still there: a list may have been answered from an old cache, or in part. A
   * node without a machine was taken by the cloud; if the cloud shows that the same machine runs,
   * somebody has deleted its Node.
   */
  async confirmed(note: Note, policy: Policy, signal: AbortSignal): Promise<Note | undefined> {
    const { event, departure } = note;
    if (event !== "NodeGone" && event !== "MachineReplaced") return note;
    const fresh = await this.#options.readNode(departure.node.name);
    if (interruptionOf(departure, fresh)?.event !== event) return undefined;
    if (event !== "NodeGone" || !(await this.#isRunning(departure, policy, signal))) return note;
    const detail = "its Node was deleted, and its machine still runs";
    return { ...note, event: "Cancelled", reason: "PlanChanged", detail };
  }

  /** False if it cannot be known, as when the cloud has made a machine of that name since. */
  async #isRunning(
    { node, createdAt }: Departure,
    policy: Policy,
    signal: AbortSignal,
  ): Promise<boolean> {
    const mode = releaseModeOf({ labels: {} }, policy.instance);
    const { providerID } = node;
    if (mode === "None" || providerID === undefined || createdAt === undefined) return false;
    const state = await this.#describe({ providerID, mode }, signal);
    if (state?.kind !== "Present" || !state.running) return false;
    return state.bornAt !== undefined && state.bornAt <= createdAt;
  }

  async #describe(
    machine: Parameters<Executor["describe"]>[0],
    signal: AbortSignal,
  ): Promise<MachineState | undefined> {
    const { executor, clock } = this.#options;
    this.#patientUntilMs ??= clock.monotonic() + answerWithinMs;
    const leftMs = this.#patientUntilMs - clock.monotonic();
    if (leftMs <= 0) return undefined;
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    const unknown = () => undefined;
    const late = clock.sleep(millis(leftMs), stop).then(unknown, unknown);
    const answer = executor.describe(machine, stop).catch(unknown);
    const state = await Promise.race([answer, late]);
    over.abort();
    return state;
  }
}
