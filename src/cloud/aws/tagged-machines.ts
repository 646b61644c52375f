import type { Clock } from "../../contracts/clock.ts";
import type { Rng } from "../../core/rng.ts";
import { type Millis, millis, minutes, seconds } from "../../core/time.ts";
import { LastcallError } from "../../errors.ts";
import { asFault } from "./aws-fault.ts";
import type { Ec2, Tag } from "./ec2.ts";

export interface TaggedMachinesOptions {
  readonly ec2: Ec2;
  readonly tag: Tag;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** Tags seldom change, and a machine that is not known is asked for by itself. */
const refreshMs: Millis = minutes(5);
/** A notice waits no longer than this for EC2. */
const answerWithinMs: Millis = seconds(1);

type Trouble = (error: LastcallError) => void;

/**
 * Which instances carry a tag, known beforehand as far as possible. Fails open: where EC2 does not
 * say it, an instance counts as one that does.
 */
export class TaggedMachines {
  readonly #options: TaggedMachinesOptions;
  #tagged: ReadonlySet<string> = new Set();
  /** Asked for by themselves since the last look at all. */
  readonly #asked = new Map<string, Promise<boolean>>();

  constructor(options: TaggedMachinesOptions) {
    this.#options = options;
  }

  /** Looks at all of them again and again, until the signal aborts. Never rejects. */
  async follow(onTrouble: Trouble, signal: AbortSignal): Promise<void> {
    const { ec2, tag, clock, rng } = this.#options;
    while (!signal.aborted) {
      try {
        this.#tagged = await ec2.tagged(tag, signal);
        this.#asked.clear();
      } catch (error) {
        if (signal.aborted) return;
        onTrouble(asFault(error));
      }
      // Between nine and eleven tenths, so that several controllers do not ask in step.
      const span = millis(Math.round(refreshMs * (0.9 + 0.2 * rng())));
      await clock.sleep(span, signal).catch(() => undefined);
    }
  }

  /** Never rejects, and never takes longer than a second. */
  async has(machine: string, onTrouble: Trouble): Promise<boolean> {
    if (this.#tagged.has(machine)) return true;
    const asked = this.#asked.get(machine);
    if (asked !== undefined) return asked;
    const asking = this.#ask(machine).catch((error: unknown) => {
      // It is asked again at the next notice.
      this.#asked.delete(machine);
      onTrouble(asFault(error));
      return true;
    });
    this.#asked.set(machine, asking);
    return asking;
  }

  async #ask(machine: string): Promise<boolean> {
    const { ec2, tag, clock } = this.#options;
    const over = new AbortController();
    const answer = ec2.tagged(tag, over.signal, [machine]).then((found) => found.has(machine));
    const late = clock.sleep(answerWithinMs, over.signal).then(() => {
      throw new LastcallError(
        "CLOUD_UNREACHABLE",
        `Cannot tell whether ${machine} carries the tag ${tag.key}: EC2 has not answered within a second, the notice is heeded`,
      );
    });
    // Whoever is second has nobody left to hear of it.
    answer.catch(() => undefined);
    late.catch(() => undefined);
    try {
      return await Promise.race([answer, late]);
    } finally {
      over.abort();
    }
  }
}
