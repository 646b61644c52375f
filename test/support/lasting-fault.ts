import type { Fault, FaultCall } from "./fault-proxy.ts";

interface LastingFault {
  readonly kind: string;
  readonly harms: (call: FaultCall) => boolean;
  readonly fault: Fault;
}

const refused: Fault = { kind: "Status", code: 403 };

/** What stays broken: a webhook or a policy that refuses, a right that is gone, or everything. */
const faults: readonly LastingFault[] = [
  {
    kind: "CordonsRefused",
    harms: ({ method, path }) => method === "PATCH" && path.startsWith("/api/v1/nodes/"),
    fault: refused,
  },
  {
    kind: "PodListsRefused",
    harms: ({ method, path }) => method === "GET" && /^\/api\/v1\/pods\?/.test(path),
    fault: refused,
  },
  {
    kind: "EvictionsFail",
    harms: ({ path }) => path.split("?")[0]?.endsWith("/eviction") === true,
    fault: { kind: "Status", code: 500 },
  },
  {
    kind: "StatusesRefused",
    harms: ({ method, path }) => method === "PATCH" && /\/departures\/[^/]+\/status/.test(path),
    fault: refused,
  },
  { kind: "Outage", harms: () => true, fault: { kind: "Reset" } },
];

export interface Spell {
  readonly kind: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Faults that last: one kind at a time, all kinds in turn. */
export class LastingFaults {
  /** Those so far; the times are those of `nowMs`. */
  readonly spells: Spell[] = [];
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Starts the next kind. */
  begin(lastsMs: number): Spell {
    const { kind } = faults[this.spells.length % faults.length] as LastingFault;
    const fromMs = this.#nowMs();
    const spell = { kind, fromMs, toMs: fromMs + lastsMs };
    this.spells.push(spell);
    return spell;
  }

  faultFor(call: FaultCall): Fault | undefined {
    const spell = this.spells.at(-1);
    if (spell === undefined || this.#nowMs() >= spell.toMs) return undefined;
    const found = faults.find(({ kind }) => kind === spell.kind);
    return found?.harms(call) === true ? found.fault : undefined;
  }
}
