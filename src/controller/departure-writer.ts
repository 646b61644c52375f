import type { DepartureStore, StoreResult } from "../contracts/cluster.ts";
import type { Telemetry } from "../contracts/telemetry.ts";
import { mayBeSameMachine } from "../core/cluster/node.ts";
import type { NewDeparture } from "../core/departure/decision.ts";
import {
  type Departure,
  type DepartureStatus,
  endsAsPlanned,
  hasFinalizer,
  isLive,
} from "../core/departure/departure.ts";
import { isOvertaken } from "../core/notice/interruption.ts";
import { isUndoing, type NoticeUpdate, noticeUpdate, updateFrom } from "../core/notice/notice.ts";
import type { Instant } from "../core/time/time.ts";
import { assert, LastcallError } from "../errors.ts";
import { departing } from "./departure/departure-telemetry.ts";

/** How often a write is tried that others always precede. Then it is retried later, with pauses. */
const mostTries = 6;

/** What the API server answers with a conflict, and how often a write has met one. */
interface Conflict extends Extract<StoreResult, { readonly kind: "Conflict" }> {
  readonly tries: number;
}

/**
 * What follows from a conflict, once a newer version is known. One that nobody else has changed is
 * refused by something else, such as an admission webhook, and would be again.
 */
function checkConflict(written: Departure, newest: Departure, { message, tries }: Conflict): void {
  const isRefusal = newest.resourceVersion === written.resourceVersion;
  if (!isRefusal && tries < mostTries) return;
  const why = isRefusal ? "nobody else has changed it" : `others changed it ${tries} times`;
  const problem = `Cannot write the Departure ${written.name}: ${message}, although ${why}`;
  throw new LastcallError("CONFLICT", problem, { retryable: !isRefusal });
}

/**
 * Writes Departures. Each write is fenced by resourceVersion: after a conflict, what is still to be
 * written is written again, onto the Departure as the watch shows it or as it is read.
 */
export class DepartureWriter {
  readonly #store: DepartureStore;
  readonly #telemetry: Telemetry;

  constructor(store: DepartureStore, telemetry: Telemetry) {
    this.#store = store;
    this.#telemetry = telemetry;
  }

  /** Creates a Departure. `Exists`: nothing was done, because its name is taken. */
  async schedule(departure: NewDeparture): Promise<"Made" | "Exists"> {
    const result = await this.#store.create(departure);
    if (result.kind !== "Done") return "Exists";
    const { name, namesTaken = [] } = departure;
    if (namesTaken.length > 0) {
      const taken = namesTaken.join(" ");
      this.#telemetry.log.warn("departure-name-taken", {
        node: departure.node.name,
        taken,
        instead: name,
      });
    }
    this.#telemetry.log.info("departure-scheduled", {
      node: departure.node.name,
      message: departure.message,
    });
    const { message } = departure;
    const isLate = departure.reason === "DeadlineBeatsWindow";
    const reason = isLate ? "DeadlineBeatsWindow" : "DepartureScheduled";
    for (const about of departing(result.departure)) {
      this.#telemetry.events.emit({ type: isLate ? "Warning" : "Normal", reason, message, about });
    }
    return "Made";
  }

  /** Applies a notice to a departure: its cause, and an earlier deadline. */
  async notice(departure: Departure, update: NoticeUpdate): Promise<void> {
    await this.#writeSpec(departure, (current) => {
      // The notice would be lost with the withdrawal: its reporter retries.
      if (current !== departure && isUndoing(current)) return undefined;
      // The watch was late: what looked like a notice is the end that we have begun.
      if (current !== departure && endsAsPlanned(current, update.cause)) return undefined;
      const news = current === departure ? update : noticeUpdate(current, update);
      return news && this.#store.notice(current, news);
    });
  }

  /** Withdraws the notice of a departure, unless another notice has changed it since. */
  async withdraw(departure: Departure, at: Instant): Promise<void> {
    const { source, deadlineAt } = departure;
    await this.#writeSpec(departure, (current) => {
      const isSame = current.source === source && current.deadlineAt === deadlineAt;
      const isStanding = current === departure || (isSame && !isUndoing(current));
      return isStanding ? this.#store.withdraw(current, at) : undefined;
    });
  }

  /** Clears the planned instant of a departure that is under way by a notice. */
  async dropInstant(departure: Departure): Promise<void> {
    await this.#writeSpec(departure, (current) =>
      current === departure || isOvertaken(current) ? this.#store.dropInstant(current) : undefined,
    );
  }

  /**
   * Writes, and on a conflict retries on the departure as it is then, unless `write` finds nothing
   * left to write. `Ended`: nothing was written, because the departure has ended.
   */
  async #writeSpec(
    departure: Departure,
    write: (current: Departure) => Promise<StoreResult> | undefined,
  ): Promise<"Done" | "Ended"> {
    let current = departure;
    for (let tries = 1; ; tries += 1) {
      const result = await write(current);
      if (result?.kind === "Gone") return "Ended";
      if (result?.kind !== "Conflict") return "Done";
      const newest = await this.#after(current, { ...result, tries });
      if (newest === undefined || !isLive(newest)) return "Ended";
      current = newest;
    }
  }

  /**
   * The Departure as it is after a conflict; undefined if it is gone. It is read only if the watch
   * shows nothing newer: the read takes another round trip, and a right that may be missing.
   */
  async #after(written: Departure, conflict: Conflict): Promise<Departure | undefined> {
    const { name, uid } = written;
    const { newer } = conflict;
    const read = newer === undefined ? await this.#store.read(name) : undefined;
    const newest = read?.kind === "Done" ? read.departure : newer;
    if (newest?.uid !== uid) return undefined;
    checkConflict(written, newest, conflict);
    return newest;
  }

  /**
   * Hands a notice over to the departure that owns the node. `Orphan`: no such departure exists, or
   * it is of another boot, and the mark is left over. Throws a retryable `CONFLICT` while that
   * departure is being withdrawn, because the notice would be withdrawn with it.
   */
  async handOver(notice: Departure, owner: string): Promise<"Done" | "Orphan"> {
    const found = await this.#store.read(owner);
    if (found.kind !== "Done" || !isLive(found.departure)) return "Orphan";
    if (!mayBeSameMachine(found.departure.node, notice.node)) return "Orphan";
    const told = updateFrom(notice);
    const end = await this.#writeSpec(found.departure, (current) => {
      if (isUndoing(current)) {
        const problem = `the Departure ${owner} is being withdrawn, retrying once it has ended`;
        throw new LastcallError("CONFLICT", `Cannot hand over the notice: ${problem}`);
      }
      if (endsAsPlanned(current, told?.cause)) return undefined;
      const update = told && noticeUpdate(current, told);
      return update && this.#store.notice(current, update);
    });
    return end === "Ended" ? "Orphan" : "Done";
  }

  /** Whether a departure still exists and has not ended, by a read of the API server. */
  async isLive(departure: Departure): Promise<boolean> {
    const found = await this.#store.read(departure.name);
    if (found.kind !== "Done" || found.departure.uid !== departure.uid) return false;
    return isLive(found.departure) && found.departure.deletionAt === undefined;
  }

  /**
   * Keeps the Departure from vanishing while it is under way. Returns it as written; undefined if
   * it is gone, or being deleted, when no finalizer can be added.
   */
  async guard(departure: Departure, hurry: AbortSignal): Promise<Departure | undefined> {
    let guarded: Departure | undefined = departure;
    const end = await this.#writeSpec(departure, async (current) => {
      guarded = current.deletionAt === undefined ? current : undefined;
      if (guarded === undefined || hasFinalizer(current)) return { kind: "Done", departure };
      const result = await this.#store.finalize(current, "Add", hurry);
      if (result.kind === "Done") guarded = result.departure;
      return result;
    });
    return end === "Done" ? guarded : undefined;
  }

  /** A departure that has ended has nothing left to undo: a deleted one then vanishes. */
  async removeFinalizer(departure: Departure): Promise<void> {
    assert(departure.status.phase === "Ended", "only an ended departure has nothing to undo");
    await this.#store.finalize(departure, "Remove");
  }

  /** Deletes a Departure that ended long ago. */
  async forget(departure: Departure): Promise<void> {
    assert(departure.status.phase === "Ended", "only an ended departure is forgotten");
    await this.#store.remove(departure);
  }

  /**
   * Writes the status. `change` is evaluated at once, again when the request is sent (which may be
   * later in a burst), and after a conflict on the departure as it is then. It returns undefined if
   * there is nothing to write. The result is undefined if the Departure is gone.
   */
  async record(
    departure: Departure,
    change: (fresh: Departure) => DepartureStatus | undefined,
    hurry?: AbortSignal,
  ): Promise<Departure | undefined> {
    let current = departure;
    for (let tries = 1; ; tries += 1) {
      const fresh = current;
      if (change(fresh) === undefined) return fresh;
      const status = () => change(fresh) ?? fresh.status;
      const result = await this.#store.record(fresh, { status, hurry });
      if (result.kind === "Done") return result.departure;
      if (result.kind === "Gone") return undefined;
      const newest = await this.#after(current, { ...result, tries });
      if (newest === undefined) return undefined;
      current = newest;
    }
  }
}
