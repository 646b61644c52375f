import type { NodeFacts } from "../../core/cluster/node.ts";
import { type Departure, isNoticed } from "../../core/departure/departure.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import { isMarkOutdated, isOvertaken, mayShowMark } from "../../core/notice/interruption.ts";
import type { Executor } from "../executor.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import type { StepContext } from "./step.ts";

/** Cordons and marks the node, in one patch that tests who it is. */
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

/** A node leaves once. What the cloud has said is not lost with the departure that came second. */
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

/** Ends a roll-back, with the reason that began it. */
export async function rolledBack({ departure }: StepContext): Promise<PhaseResult> {
  return { event: "RolledBack", reason: departure().status.reason ?? "RolledBackByRule" };
}

/**
 * Keeps what people see of a departure in step with it, when a notice comes to one that is under
 * way or was planned for later: the marks on its node, and its instant. Nothing waits for it, and
 * what fails is tried again at the next look.
 */
export class MarkUpkeep {
  readonly #executor: Executor;
  readonly #telemetry: DepartureTelemetry;
  readonly #busy = new Set<string>();
  /** What the mark was made or renewed for last; the taint alone does not tell the deadline. */
  #markedFor: string | undefined;

  constructor(executor: Executor, telemetry: DepartureTelemetry) {
    this.#executor = executor;
    this.#telemetry = telemetry;
  }

  /**
   * `departure` as its run knows it, `seen` as the watch shows it: what that has is in the cluster.
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

/** What the cloud has said of it, by which news is known. */
export function noticeOf({ cause, deadlineAt, noticedAt }: Departure): string {
  return `${cause} ${deadlineAt} ${noticedAt}`;
}
