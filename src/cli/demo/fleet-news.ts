import type { Departure } from "../../core/departure/departure.ts";
import type { Instant } from "../../core/time/time.ts";
import type { MachineEvent } from "../../sim/cloud/model-machine.ts";
import type { BoardNews } from "./board-state.ts";

/** So many are kept for the board. */
const keptNews = 20;

/** Told everything there is to tell, in the order in which it happens. */
export type NewsListener = (news: BoardNews) => void;

/** Tells what happens in a fleet by what has changed in it. */
export class FleetNews {
  readonly #phases = new Map<string, string>();
  #recent: readonly BoardNews[] = [];
  #count = 0;

  /** How many there have been, of those for the board. */
  count(): number {
    return this.#count;
  }

  /** What happened to nodes last, the newest first: notices, drains before a deadline, ends. */
  recent(): readonly BoardNews[] {
    return this.#recent;
  }

  /** Looks at all departures again and tells what has changed in their phases. */
  seeDepartures(departures: readonly Departure[], at: Instant, onNews: NewsListener): void {
    const seen = new Set(departures.map((one) => one.uid));
    for (const uid of this.#phases.keys()) if (!seen.has(uid)) this.#phases.delete(uid);
    for (const departure of departures) {
      const { uid, node, status, noticedAt } = departure;
      const before = this.#phases.get(uid);
      this.#phases.set(uid, status.phase);
      if (before === status.phase || status.message === undefined) continue;
      const news = { at, node: node.name, message: messageOf(departure) };
      onNews({ ...news, what: status.outcome ?? status.phase });
      const isDrained = status.phase === "Releasing" && noticedAt !== undefined;
      if (status.outcome !== undefined) this.#keep({ ...news, what: status.outcome });
      else if (isDrained) this.#keep({ ...news, what: "Drained" });
    }
  }

  seeCloud({ kind, at, machine, because }: MachineEvent, onNews: NewsListener): void {
    if (kind === "Noticed") {
      const why = because === "Limit" ? "at its 24 hours" : "before its time";
      const message = `${machine.name} is interrupted by the cloud, ${why}.`;
      const news = { at, node: machine.name, what: "Noticed", message };
      this.#keep(news);
      onNews(news);
    }
    if (kind === "Registered") {
      const message = `${machine.name} has a new machine.`;
      onNews({ at, node: machine.name, what: "Registered", message });
    }
  }

  #keep(news: BoardNews): void {
    this.#count += 1;
    this.#recent = [news, ...this.#recent].slice(0, keptNews);
  }
}

/** What the ledger says; of a machine that the cloud took, how its drain had gone by then. */
function messageOf({ node, status }: Departure): string {
  const { outcome, drain, message = "" } = status;
  if (outcome !== "Preempted" || drain === undefined || drain.left > 0) return message;
  if (drain.total === 0) return `${node.name} is gone; it had no pods to drain.`;
  return `${node.name} is gone; all ${drain.total} pods were drained before.`;
}
