import type { Clock } from "../contracts/clock.ts";
import type { Fleet } from "../contracts/fleet.ts";
import type { WordFate } from "../contracts/notice-feed.ts";
import type { Departure } from "../core/departure.ts";
import { type MachineWord, meaningOf, type WordMeaning } from "../core/machine-word.ts";
import type { NodeFacts } from "../core/node.ts";
import { callsOfMarks, noticeOfNode } from "../core/node-notice.ts";
import type { NoticeCall } from "../core/notice-call.ts";
import { between, type Millis, millis, plus } from "../core/time.ts";
import { LastcallError, messageOf } from "../errors.ts";
import type { Executor } from "./executor.ts";

export interface NoticeDeskTools {
  readonly fleet: Fleet;
  readonly executor: Executor;
  readonly clock: Clock;
}

/** A watch that lags by more is no reason to hold a word back: it is to be told again. */
const watchLagMs: Millis = millis(2000);

/**
 * Writes down what notices without an agent call for: the platform's own marks on nodes, and the
 * words of feeds. Of a hundred nodes that end together, or a word that is told a hundred times,
 * each is asked for once.
 */
export class NoticeDesk {
  readonly #tools: NoticeDeskTools;
  /** What was written, or is being written, and is not seen yet. */
  readonly #asked = new Map<string, Promise<void>>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(tools: NoticeDeskTools) {
    this.#tools = tools;
  }

  /** Looks at the marks on some nodes, or on all. What fails is for the next look at all to try again. */
  lookAtMarks(some?: readonly NodeFacts[]): void {
    const { fleet, clock, executor } = this.#tools;
    const at = clock.now();
    // Hardly ever one has any: for that the whole picture is not laid out.
    if (some?.every((node) => noticeOfNode(node, at) === undefined)) return;
    const view = fleet.view();
    this.#forgetSeen(view.departures);
    for (const call of callsOfMarks({ ...view, nodes: some ?? view.nodes, at })) {
      this.#carryOut(call).catch((error: unknown) =>
        executor.voice.log.warn("act-failed", { error: messageOf(error) }),
      );
    }
  }

  /**
   * See `FeedListener.onWord`. Words of one machine take turns: the second is judged by what has come of
   * the first, which may be a departure of a cause that the policy ignores.
   */
  async heed(word: MachineWord): Promise<WordFate> {
    const turn = (this.#turns.get(word.machine) ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.#untilKnown(word));
    this.#turns.set(word.machine, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(word.machine) === turn) this.#turns.delete(word.machine);
    }
  }

  /** What is written counts when the watch shows it: another's departure may have had the name. */
  async #untilKnown(word: MachineWord): Promise<WordFate> {
    const { clock } = this.#tools;
    let asked: string | undefined;
    for (let until = clock.now(); asked === undefined || clock.now() < until; ) {
      const meaning = this.#meaning(word);
      if (meaning.kind === "Known") return "Taken";
      if (meaning.kind === "Undoing") throw busy(word);
      if (!isCall(meaning)) return meaning.kind;
      const { key } = this.#deedOf(meaning);
      if (key === asked) {
        await this.#nextChange(between(clock.now(), until));
        continue;
      }
      await this.#carryOut(meaning);
      if (asked === undefined && word.notice.withdrawn !== true) this.#count(word);
      asked = key;
      until = plus(clock.now(), watchLagMs);
    }
    throw new LastcallError(
      "CONFLICT",
      `Cannot tell what became of the notice for ${word.machine}: the watch shows no departure for it, one is wanted`,
    );
  }

  #meaning(word: MachineWord): WordMeaning {
    const { fleet, clock } = this.#tools;
    return meaningOf(word, { ...fleet.view(), at: clock.now() });
  }

  async #nextChange(most: Millis): Promise<void> {
    const { fleet, clock } = this.#tools;
    const change = new AbortController();
    const stop = fleet.onChange(() => change.abort());
    // The sleep is called off by the change; that it then rejects is no fault.
    await clock.sleep(most, change.signal).catch(() => undefined);
    stop();
  }

  /** A source begins with its cloud and its way: `aws/queue/spot-interruption`. */
  #count({ notice }: MachineWord): void {
    const [cloud = "", source = ""] = notice.source.split("/");
    const labels = { cloud, kind: notice.cause, source };
    this.#tools.executor.voice.metrics.count("lastcall_notices_total", labels);
  }

  #carryOut(call: NoticeCall): Promise<void> {
    const { key, write } = this.#deedOf(call);
    if (this.#asked.has(key)) this.#forgetSeen(this.#tools.fleet.view().departures);
    const asked = this.#asked.get(key);
    if (asked !== undefined) return asked;
    const written = write().catch((error: unknown) => {
      this.#asked.delete(key);
      throw error;
    });
    this.#asked.set(key, written);
    return written;
  }

  /** The key is the name to be seen, or the version of the departure that is to change. */
  #deedOf(call: NoticeCall): { readonly key: string; readonly write: () => Promise<void> } {
    const { executor } = this.#tools;
    if (call.kind === "Make") {
      return { key: call.order.name, write: () => executor.schedule(call.order) };
    }
    const key = versionOf(call.departure);
    if (call.kind === "Withdraw") {
      return { key, write: () => executor.withdraw(call.departure, call.at) };
    }
    return { key, write: () => executor.notice(call.departure, call.word) };
  }

  #forgetSeen(departures: readonly Departure[]): void {
    if (this.#asked.size === 0) return;
    const versions = new Set(departures.map(versionOf));
    const names = new Set(departures.map(({ name }) => name));
    for (const key of this.#asked.keys()) {
      const isVersion = key.includes("@");
      if (isVersion ? !versions.has(key) : names.has(key)) this.#asked.delete(key);
    }
  }
}

/** It is told again; by then the departure has ended. */
function busy({ machine }: MachineWord): LastcallError {
  return new LastcallError(
    "CONFLICT",
    `Cannot write down the notice for ${machine}: its node's departure is being taken back, an end of that is wanted`,
  );
}

function isCall(meaning: WordMeaning): meaning is NoticeCall {
  return meaning.kind === "Make" || meaning.kind === "Force" || meaning.kind === "Withdraw";
}

/** No name holds an `@`. */
function versionOf({ name, resourceVersion }: Departure): string {
  return `${name}@${resourceVersion}`;
}
