import type { Clock } from "../../contracts/clock.ts";
import type { FeedListener, NoticeFeed } from "../../contracts/cloud/notices.ts";
import { around } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { type Millis, minutes, seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { asFault } from "./aws-client.ts";
import { type Ec2, mostAskedFor, type Tag } from "./ec2-machine.ts";

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

/** Instances that are asked for by one request. */
interface Batch {
  readonly machines: string[];
  readonly answer: Promise<ReadonlySet<string>>;
}

type TroubleListener = (error: LastcallError) => void;

/**
 * Which instances carry a tag, known beforehand as far as possible. Fails open: where EC2 does not
 * say it, an instance counts as one that does.
 */
export class TaggedMachines {
  readonly #options: TaggedMachinesOptions;
  #tagged: ReadonlySet<string> = new Set();
  /** Asked for by themselves since the last look at all. */
  readonly #asked = new Map<string, Promise<boolean>>();
  /** Waits for the request before it, and takes in what is asked for meanwhile. */
  #next: Batch | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: TaggedMachinesOptions) {
    this.#options = options;
  }

  /** Looks at all of them again and again, until the signal aborts. Never rejects. */
  async follow(onError: TroubleListener, signal: AbortSignal): Promise<void> {
    const { ec2, tag, clock, rng } = this.#options;
    while (!signal.aborted) {
      try {
        this.#tagged = await ec2.tagged(tag, signal);
        this.#asked.clear();
      } catch (error) {
        if (signal.aborted) return;
        onError(asFault(error));
      }
      await clock.sleep(around(refreshMs, rng), signal).catch(() => undefined);
    }
  }

  /** Never rejects, and never takes longer than a second. */
  async has(machine: string, onError: TroubleListener): Promise<boolean> {
    if (this.#tagged.has(machine)) return true;
    const asked = this.#asked.get(machine);
    if (asked !== undefined) return asked;
    const asking = this.#ask(machine).catch((error: unknown) => {
      // It is asked again at the next notice.
      if (this.#asked.get(machine) === asking) this.#asked.delete(machine);
      onError(asFault(error));
      return true;
    });
    this.#asked.set(machine, asking);
    return asking;
  }

  /** However many notices come at a time, EC2 gets one request after the other. */
  async #ask(machine: string): Promise<boolean> {
    const { answer } = this.#join(machine);
    const found = await this.#withinLimit(() => answer);
    return found.has(machine);
  }

  #join(machine: string): Batch {
    const batch = this.#next ?? this.#open();
    batch.machines.push(machine);
    this.#next = batch.machines.length < mostAskedFor ? batch : undefined;
    return batch;
  }

  #open(): Batch {
    const machines: string[] = [];
    const answer = this.#last.then(() => {
      if (this.#next?.machines === machines) this.#next = undefined;
      const { ec2, tag } = this.#options;
      return this.#withinLimit((signal) => ec2.tagged(tag, signal, machines));
    });
    // Nobody may be left who waits: a rejection would have no handler.
    this.#last = answer.catch(() => undefined);
    return { machines, answer };
  }

  async #withinLimit<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { tag, clock } = this.#options;
    const over = new AbortController();
    const late = clock.sleep(answerWithinMs, over.signal).then(() => {
      throw new LastcallError(
        "CLOUD_UNREACHABLE",
        `Cannot tell who carries the tag ${tag.key}: EC2 has not answered within a second, the notice is acted on`,
      );
    });
    const answer = ask(over.signal);
    // Once the race is decided, a rejection of the other would have no handler.
    answer.catch(() => undefined);
    late.catch(() => undefined);
    try {
      return await Promise.race([answer, late]);
    } finally {
      over.abort();
    }
  }
}

/** AWS' own limits of a tag's key and value. */
const longestKey = 128;
const longestValue = 256;

/**
 * Reads `KEY` or `KEY=VALUE`; a key that holds an `=` itself cannot be named. Throws
 * CONFIG_INVALID, which names the option.
 */
export function parseManagedTag(text: string): Tag {
  const at = text.indexOf("=");
  const key = at < 0 ? text : text.slice(0, at);
  const value = at < 0 ? undefined : text.slice(at + 1);
  const isKey = key.trim() !== "" && key.length <= longestKey;
  if (isKey && (value ?? "").length <= longestValue) return { key, value };
  throw new LastcallError(
    "CONFIG_INVALID",
    `Cannot use --aws-managed-tag: found ${JSON.stringify(text.slice(0, 60))}, expected KEY or KEY=VALUE with a key of 1 to ${longestKey} and a value of up to ${longestValue} characters`,
  );
}

export interface ManagedFeedOptions {
  /** Feeds that speak of EC2's instances alone. */
  readonly feeds: readonly NoticeFeed[];
  readonly machines: TaggedMachines;
  /** Whether an instance is a node of the cluster: nobody else's tags are looked at. */
  readonly isNode: (machine: string) => boolean;
}

/** Other feeds, less what they say of nodes whose instances do not carry a tag. */
export class ManagedFeed implements NoticeFeed {
  readonly #options: ManagedFeedOptions;

  constructor(options: ManagedFeedOptions) {
    this.#options = options;
  }

  async run(listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { feeds, machines } = this.#options;
    const onError = listener.onError.bind(listener);
    const managed: FeedListener = {
      onNotice: async (instanceNotice) =>
        (await this.#isManaged(instanceNotice.machine, onError))
          ? listener.onNotice(instanceNotice)
          : "NotOwned",
      onHook: async (hook) =>
        (await this.#isManaged(hook.machine, onError)) ? listener.onHook(hook) : "LeftAlone",
      onError,
    };
    await Promise.all([
      machines.follow(onError, signal),
      ...feeds.map((feed) => feed.run(managed, signal)),
    ]);
  }

  async #isManaged(machine: string, onError: FeedListener["onError"]): Promise<boolean> {
    const { machines, isNode } = this.#options;
    return !isNode(machine) || machines.has(machine, onError);
  }
}
