import { type Rng, seededRng } from "../../src/core/chance/chance.ts";
import type { LastcallProcess } from "../support/lastcall-process.ts";
import type { RelayCall } from "../support/relay.ts";

/** The calls that advance a departure, in order. */
const steps = [
  "Schedule",
  "Begin",
  "Mark",
  "Draining",
  "Evict",
  "Releasing",
  "Look",
  "Release",
  "RemoveNode",
  "End",
] as const;

type Step = (typeof steps)[number];

/** Before the call reaches the server, or before the response reaches the controller. */
type Side = "BeforeCall" | "BeforeAnswer";

interface Instant {
  readonly departure: number;
  readonly step: Step;
  readonly side: Side;
  /** How many calls of this step pass before that. */
  readonly spare: number;
}

export interface Kill {
  readonly step: Step;
  readonly side: Side;
  readonly call: string;
}

/**
 * Kills the controller with SIGKILL between two of its calls. Random times would hit only the long
 * phases; these hit every step of a departure, once before its effect and once after it. The seed
 * selects the departure, and which of its evictions and reads.
 */
export class Killer {
  readonly kills: Kill[] = [];
  readonly #left: Instant[];
  readonly #begun = new Set<string>();
  #victim: LastcallProcess | undefined;
  #spared = 0;

  constructor(seed: number) {
    this.#left = drawInstants(seededRng(seed));
  }

  get isDone(): boolean {
    return this.#left.length === 0;
  }

  aim(victim: LastcallProcess): void {
    this.#victim = victim;
  }

  async before(call: RelayCall): Promise<"Pass" | "Drop"> {
    if (stepOf(call) === "Begin") this.#begun.add(call.path);
    return (await this.#strike("BeforeCall", call)) ? "Drop" : "Pass";
  }

  async after(call: RelayCall): Promise<void> {
    await this.#strike("BeforeAnswer", call);
  }

  /** An instant that does not occur in its own departure is carried over to the next one. */
  async #strike(side: Side, call: RelayCall): Promise<boolean> {
    const [next] = this.#left;
    const victim = this.#victim;
    if (next === undefined || victim === undefined || next.departure > this.#begun.size)
      return false;
    if (next.side !== side || next.step !== stepOf(call)) return false;
    this.#spared += 1;
    if (this.#spared <= next.spare) return false;
    this.#spared = 0;
    this.#left.shift();
    this.#victim = undefined;
    await victim.kill();
    const { step } = next;
    this.kills.push({ step, side, call: `${call.method} ${call.path.split("?")[0]}` });
    return true;
  }
}

/** The ninth departure is for what did not occur in the previous eight. */
const departures = 8;

function drawInstants(rng: Rng): Instant[] {
  return shuffled(pairs(rng), rng)
    .map((pair, place): Instant => {
      const spares = pair.step === "Evict" ? 5 : pair.step === "Look" ? 2 : 1;
      const departure = pair.step === "Schedule" ? 0 : 1 + (place % departures);
      return { ...pair, departure, spare: Math.floor(rng() * spares) };
    })
    .sort((a, b) => a.departure - b.departure || placeOf(a.step) - placeOf(b.step));
}

/** Departures are scheduled all at once, which happens only once; there are many evictions. */
function pairs(rng: Rng): { readonly step: Step; readonly side: Side }[] {
  const side = (): Side => (rng() < 0.5 ? "BeforeCall" : "BeforeAnswer");
  const both = steps.flatMap((step) => [
    { step, side: "BeforeCall" as const },
    { step, side: "BeforeAnswer" as const },
  ]);
  return [
    ...both.filter(({ step }) => step !== "Schedule"),
    { step: "Schedule", side: side() },
    { step: "Evict", side: side() },
  ];
}

function shuffled<T>(items: readonly T[], rng: Rng): T[] {
  return items
    .map((item) => ({ item, key: rng() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}

function placeOf(step: Step): number {
  return steps.indexOf(step);
}

function stepOf({ method, path, body }: RelayCall): Step | undefined {
  const [plain = ""] = path.split("?");
  if (plain.startsWith("/compute/")) {
    if (plain.endsWith("/recreateInstances")) return "Release";
    return plain.includes("/instances/") ? "Look" : undefined;
  }
  if (plain.endsWith("/eviction")) return "Evict";
  if (/^\/api\/v1\/nodes\/[^/]+$/.test(plain) && method !== "GET") {
    return method === "DELETE" ? "RemoveNode" : "Mark";
  }
  if (method === "POST" && plain.endsWith("/departures")) return "Schedule";
  if (method !== "PATCH" || !/\/departures\/[^/]+\/status$/.test(plain)) return undefined;
  switch (JSON.parse(body).status?.phase) {
    case "Preparing":
      return "Begin";
    case "Draining":
      return "Draining";
    case "Releasing":
      return "Releasing";
    case "Ended":
      return "End";
    default:
      // Held, or no longer held: the departure has not started yet.
      return undefined;
  }
}
