import type { NodeFacts } from "../core/cluster/node.ts";
import type { Decision } from "../core/departure/decision.ts";
import { interruptionOf } from "../core/notice/interruption.ts";
import { strayRequest } from "../core/notice/machine-evidence.ts";
import type { Policy } from "../core/policy/policy.ts";
import { RunningMachines, type RunningMachinesOptions } from "./departure/running-machine.ts";

type NoteDecision = Extract<Decision, { kind: "Note" }>;

export interface UnbegunOptions extends RunningMachinesOptions {
  readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
}

/** The ends, found in one pass, of departures that have not started. */
export class UnbegunEnds {
  readonly #options: UnbegunOptions;
  readonly #running: RunningMachines;

  constructor(options: UnbegunOptions) {
    this.#options = options;
    this.#running = new RunningMachines(options);
  }

  /**
   * The end of a departure as far as there is evidence. Undefined if a read of the API server shows
   * that its node is still there: a list may have been answered from an old cache, or in part.
   */
  async confirmed(
    note: NoteDecision,
    policy: Policy,
    signal: AbortSignal,
  ): Promise<NoteDecision | undefined> {
    const { event, departure } = note;
    if (event !== "NodeGone" && event !== "MachineReplaced") return note;
    const fresh = await this.#options.readNode(departure.node.name);
    if (interruptionOf(departure, fresh)?.event !== event) return undefined;
    const detail = strayRequest(departure, fresh);
    if (detail !== undefined)
      return { ...note, event: "Cancelled", reason: "WrongMachine", detail };
    return this.#running.withEvidence(note, { departure, policy }, signal);
  }
}
