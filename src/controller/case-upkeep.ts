import type { NodeFacts } from "../core/cluster/node.ts";
import type { Departure } from "../core/departure/departure.ts";
import { isMarkOutdated, isOvertaken, mayShowMark } from "../core/notice/marked-node.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import type { Executor } from "./executor.ts";

/**
 * Keeps what people see of a departure in step with it, when a notice comes to one that is under way or was
 * planned for later: the marks on its node, and its instant. Nothing waits for it, and what fails is tried again at
 * the next look.
 */
export class CaseUpkeep {
  readonly #executor: Executor;
  readonly #telemetry: DepartureTelemetry;
  readonly #busy = new Set<string>();
  /** What the mark was made or renewed for last; the taint alone does not tell the deadline. */
  #marked: string | undefined;

  constructor(executor: Executor, telemetry: DepartureTelemetry) {
    this.#executor = executor;
    this.#telemetry = telemetry;
  }

  /** `departure` as the case knows it, `seen` as the watch shows it: what that has is in the ledger. */
  look(departure: Departure, seen: Departure, node: NodeFacts | undefined): void {
    if (isOvertaken(seen)) {
      this.#once("instant-not-dropped", departure, () => this.#executor.dropInstant(seen));
    }
    const said = gistOf(departure);
    this.#marked ??= said;
    if (node === undefined || !mayShowMark(departure, node)) return;
    if (this.#marked === said && !isMarkOutdated(departure, node)) return;
    this.#once("mark-not-renewed", departure, async () => {
      await this.#executor.renewMarks(departure);
      this.#marked = said;
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

function gistOf({ cause, deadlineAt, noticedAt }: Departure): string {
  return `${cause} ${deadlineAt} ${noticedAt}`;
}
