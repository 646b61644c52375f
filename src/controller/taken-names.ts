import type { Clock } from "../contracts/clock.ts";
import { type Millis, seconds } from "../core/time/time.ts";

/** How long a plan does without a name that is taken. */
const takenMs: Millis = seconds(10);

/**
 * The names that planned Departures cannot have, because the API server says that they exist. The
 * watch shows them soon, unless a list lacked them: then each pass would create them again.
 */
export class TakenNames {
  readonly #clock: Pick<Clock, "monotonic">;
  /** Until when each name rests (monotonic). */
  readonly #until = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** Creates an object of this name, unless the name has been found taken just now. */
  async whileFree(name: string, create: () => Promise<"Made" | "Exists">): Promise<void> {
    if ((this.#until.get(name) ?? 0) > this.#clock.monotonic()) return;
    const result = await create();
    const now = this.#clock.monotonic();
    for (const [one, until] of this.#until) if (until <= now) this.#until.delete(one);
    if (result === "Exists") this.#until.set(name, now + takenMs);
  }
}
