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

/** Tags seldom change, and an unknown machine is looked up individually. */
const refreshMs: Millis = minutes(5);
/** The longest that a notice waits for EC2. */
const answerWithinMs: Millis = seconds(1);

/** Instances that are looked up with one request. */
interface Batch {
  readonly machines: string[];
  readonly answer: Promise<ReadonlySet<string>>;
}

type TroubleListener = (error: LastcallError) => void;

/**
 * Whether instances have a tag, read in advance where possible. Fails open: if EC2 does not
 * respond, an instance counts as tagged.
 */
export class TaggedMachines {
  readonly #options: TaggedMachinesOptions;
  #tagged: ReadonlySet<string> = new Set();
  /** Individual lookups since the last full read. */
  readonly #asked = new Map<string, Promise<boolean>>();
  /** The next batch: collects instances until the request before it completes. */
  #next: Batch | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: TaggedMachinesOptions) {
    this.#options = options;
  }

  /** Reads all tagged instances periodically until the signal aborts. Never rejects. */
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

  /** Whether the instance has the tag. Never rejects, and never takes longer than a second. */
  async has(machine: string, onError: TroubleListener): Promise<boolean> {
    if (this.#tagged.has(machine)) return true;
    const asked = this.#asked.get(machine);
    if (asked !== undefined) return asked;
    const asking = this.#ask(machine).catch((error: unknown) => {
      // The next notice looks it up again.
      if (this.#asked.get(machine) === asking) this.#asked.delete(machine);
      onError(asFault(error));
      return true;
    });
    this.#asked.set(machine, asking);
    return asking;
  }

  /** Looks up an instance. EC2 gets one request at a time, however many notices arrive at once. */
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
    // All callers may have given up, and then nothing would handle a rejection.
    this.#last = answer.catch(() => undefined);
    return { machines, answer };
  }

  async #withinLimit<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { tag, clock } = this.#options;
    const over = new AbortController();
    const late = clock.sleep(answerWithinMs, over.signal).then(() => {
      throw new LastcallError(
        "CLOUD_UNREACHABLE",
        `Cannot determine which instances have the tag ${tag.key}: EC2 has not responded within a second, the notice is acted on`,
      );
    });
    const answer = ask(over.signal);
    // Once the race is decided, nothing else would handle a rejection of the loser.
    answer.catch(() => undefined);
    late.catch(() => undefined);
    try {
      return await Promise.race([answer, late]);
    } finally {
      over.abort();
    }
  }
}

/** AWS's limits for the key and value of a tag. */
const longestKey = 128;
const longestValue = 256;

/**
 * Parses `KEY` or `KEY=VALUE`. Keys that contain `=` are not supported. Throws CONFIG_INVALID with
 * the option's name.
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
  /** Feeds with notices about EC2 instances only. */
  readonly feeds: readonly NoticeFeed[];
  readonly machines: TaggedMachines;
  /** Whether an instance is a node of the cluster: the tags of others are not read. */
  readonly isNode: (machine: string) => boolean;
}

/** Filters other feeds: drops notices for nodes whose instances lack the tag. */
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
