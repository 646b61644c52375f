import type { Departure } from "../../core/departure/departure.ts";
import type { Instant } from "../../core/time/time.ts";
import type { CloudEvent } from "../../sim/cloud-event.ts";
import type { BoardNews } from "./board-state.ts";

/** So many are kept for the board. */
const keptNews = 20;

/** Told everything there is to tell, in the order in which it happens. */
export type NewsListener = (news: BoardNews) => void;

/** Tells what happens in a fleet by what has changed in it. */
export class FleetNews {
  readonly #phases = new Map<string, string>();
  #recent: readonly BoardNews[] = [];

  /** How departures ended last, the newest first. */
  endings(): readonly BoardNews[] {
    return this.#recent;
  }

  /** Looks at all departures anew and tells what has changed in their phases. */
  seeDepartures(departures: readonly Departure[], at: Instant, onNews: NewsListener): void {
    const seen = new Set(departures.map((one) => one.uid));
    for (const uid of this.#phases.keys()) if (!seen.has(uid)) this.#phases.delete(uid);
    for (const { uid, node, status } of departures) {
      const before = this.#phases.get(uid);
      this.#phases.set(uid, status.phase);
      if (before === status.phase || status.message === undefined) continue;
      const news = { at, node: node.name, message: status.message };
      onNews({ ...news, what: status.outcome ?? status.phase });
      if (status.outcome === undefined) continue;
      this.#recent = [{ ...news, what: status.outcome }, ...this.#recent].slice(0, keptNews);
    }
  }

  seeCloud({ kind, at, machine, because }: CloudEvent, onNews: NewsListener): void {
    if (kind === "Noticed") {
      const why = because === "Limit" ? "at its 24 hours" : "before its time";
      const message = `${machine.name} is taken by the cloud ${why}.`;
      onNews({ at, node: machine.name, what: "Taken", message });
    }
    if (kind === "Registered") {
      const message = `${machine.name} has a new machine.`;
      onNews({ at, node: machine.name, what: "Registered", message });
    }
  }
}
