import type { NodeFacts } from "../../core/cluster/node.ts";
import { type Departure, isNoticed } from "../../core/departure/departure.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import { isMarkOutdated, isOvertaken, mayShowMark } from "../../core/notice/interruption.ts";
import type { Executor } from "../executor.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import type { StepContext } from "./step.ts";

/** Cordons and marks the node in one patch that checks its identity. */
export async function cordon(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { executor, departure, node, memory, telemetry, clock, cordons } = context;
  const result = await cordons.during(() =>
    context.retry(() => executor.cordon(departure(), node()), signal),
  );
  switch (result.kind) {
    case "Done":
      memory.cordonedAtMs = clock.monotonic();
      telemetry.cordoned(departure());
      return undefined;
    case "Gone":
      return { event: "NodeGone", reason: "NodeGone" };
    case "Mismatch":
      return { event: "MachineReplaced", reason: "WrongMachine", detail: result.found };
    case "NotOurs":
      return yieldTo(result.departure, context, signal);
  }
}

/** Yields to the departure that owns the node, and hands a notice over to it. */
async function yieldTo(
  owner: string,
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { executor, departure, retry } = context;
  const { node } = departure();
  if (isNoticed(departure())) {
    const handed = await retry(() => executor.handOver(departure(), owner), signal);
    if (handed === "Orphan") {
      await retry(() => executor.uncordon({ node, departure: owner }), signal);
      return cordon(context, signal);
    }
  }
  return { event: "Cancelled", reason: "LeftToOthers", detail: owner };
}

/** Uncordons the node; one that Lastcall did not cordon stays as it is. */
export async function uncordon(
  { executor, departure, retry }: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  const { node, name } = departure();
  await retry(() => executor.uncordon({ node, departure: name }), signal);
}

/** Ends a roll-back with the reason that started it. */
export async function rolledBack({ departure }: StepContext): Promise<PhaseResult> {
  return { event: "RolledBack", reason: departure().status.reason ?? "RolledBackByRule" };
}

/**
 * Updates the node's marks and the planned instant when a notice arrives for a departure that is
 * under way or planned for later. Nothing waits for these writes; failed ones are retried at the
 * next change.
 */
export class MarkUpkeep {
  readonly #executor: Executor;
  readonly #telemetry: DepartureTelemetry;
  readonly #busy = new Set<string>();
  /** The notice of the last marks; the taint alone does not show the deadline. */
  #markedFor: string | undefined;

  constructor(executor: Executor, telemetry: DepartureTelemetry) {
    this.#executor = executor;
    this.#telemetry = telemetry;
  }

  /**
   * `departure` is the run's state; `seen` is the watch's, which is what the cluster has.
   */
  look(departure: Departure, seen: Departure, node: NodeFacts | undefined): void {
    if (isOvertaken(seen)) {
      this.#once("instant-not-dropped", departure, () => this.#executor.dropInstant(seen));
    }
    const notice = noticeOf(departure);
    this.#markedFor ??= notice;
    if (node === undefined || !mayShowMark(departure, node)) return;
    if (this.#markedFor === notice && !isMarkOutdated(departure, node)) return;
    this.#once("mark-not-renewed", departure, async () => {
      await this.#executor.renewMarks(departure);
      this.#markedFor = notice;
    });
  }

  #once(fault: string, departure: Departure, work: () => Promise<void>): void {
    if (this.#busy.has(fault)) return;
    this.#busy.add(fault);
    work()
      .catch((error: unknown) => this.#telemetry.faulted(fault, departure, error))
      .finally(() => this.#busy.delete(fault));
  }
}

/** Identifies the current notice, to detect a new one. */
export function noticeOf({ cause, deadlineAt, noticedAt }: Departure): string {
  return `${cause} ${deadlineAt} ${noticedAt}`;
}
