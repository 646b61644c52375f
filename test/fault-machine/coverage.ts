import type { TraceEvent } from "./trace.ts";
import { type DepartureObject, phaseOf, underWay, type View } from "./view.ts";

/** In which phase of which departure each fault began, and how departures under it ended. */
export class Coverage {
  /** `fault/phase` and `fault/outcome`, counted. */
  readonly counts = new Map<string, number>();
  readonly #view: View;
  readonly #met = new Map<string, Set<string>>();
  #departures = 0;

  constructor(view: View) {
    this.#view = view;
  }

  see(event: TraceEvent): void {
    if (event.kind === "Fault" && event.what === "begins") this.#begins(event.name);
    if (event.kind !== "Change" || !event.storage.startsWith("departures.")) return;
    const departure = event.object as DepartureObject;
    const before = event.previous as DepartureObject | undefined;
    const { uid } = departure.metadata;
    const met = this.#met.get(uid) ?? new Set<string>();
    this.#met.set(uid, met);
    if (underWay.includes(phaseOf(departure))) {
      for (const { name } of this.#view.faults.values()) met.add(name);
    }
    const outcome = departure.status?.outcome;
    if (outcome === undefined || before?.status?.outcome !== undefined) return;
    this.#departures += 1;
    for (const name of met) this.#count(`${name}/${outcome}`);
  }

  /** How many departures have ended. */
  departures(): number {
    return this.#departures;
  }

  #begins(name: string): void {
    const live = [...this.#view.departures.values()].filter((one) => phaseOf(one) !== "Ended");
    const phases = new Set(live.map(phaseOf));
    if (phases.size === 0) this.#count(`${name}/none`);
    for (const phase of phases) this.#count(`${name}/${phase}`);
    for (const one of live)
      if (underWay.includes(phaseOf(one))) this.#met.get(one.metadata.uid)?.add(name);
  }

  #count(key: string): void {
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
  }
}
