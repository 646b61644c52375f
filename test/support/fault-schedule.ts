import type { Rng } from "../../src/core/chance/chance.ts";
import type { Fault } from "./fault-proxy.ts";

export interface FaultScheduleOptions {
  readonly rng: Rng;
  /** The share of requests that fail, from 0 to 1. */
  readonly share: number;
  readonly nowMs: () => number;
}

/**
 * A swallowed request costs seconds, and for a minute it doubles the timeout of the next response:
 * two within that time would show nothing about either.
 */
const stallsApartMs = 65_000;

const draws: readonly ((rng: Rng) => Fault)[] = [
  (rng) => ({ kind: "Delay", ms: Math.round(50 + 950 * rng()) }),
  () => ({ kind: "Reset" }),
  () => ({ kind: "LostAnswer" }),
  () => ({ kind: "Status", code: 429, retryAfterSeconds: 1 }),
  () => ({ kind: "Status", code: 500 }),
  () => ({ kind: "Status", code: 502 }),
  () => ({ kind: "Status", code: 503 }),
  () => ({ kind: "Status", code: 504 }),
  () => ({ kind: "Hole" }),
];

/**
 * Random faults. The seed determines the sequence of draws; the order of the requests determines
 * which request gets which draw.
 */
export class FaultSchedule {
  readonly #options: FaultScheduleOptions;
  readonly #counts = new Map<string, number>();
  #stallsAgainMs = 0;

  constructor(options: FaultScheduleOptions) {
    this.#options = options;
  }

  /** How often each kind has occurred. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  next(): Fault | undefined {
    const { rng, share } = this.#options;
    if (rng() >= share) return undefined;
    const fault = (draws[Math.floor(rng() * draws.length)] as (rng: Rng) => Fault)(rng);
    if (fault.kind === "Hole" && !this.mayStall()) return undefined;
    this.count(fault.kind === "Status" ? String(fault.code) : fault.kind);
    return fault;
  }

  /**
   * Whether a fault that costs seconds is allowed now; if so, the next one is not allowed for a
   * while.
   */
  mayStall(): boolean {
    const nowMs = this.#options.nowMs();
    if (nowMs < this.#stallsAgainMs) return false;
    this.#stallsAgainMs = nowMs + stallsApartMs;
    return true;
  }

  count(kind: string): void {
    this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + 1);
  }
}
