import type { Clock } from "../contracts/clock.ts";
import type { Fleet } from "../contracts/fleet.ts";
import type { WordFate } from "../contracts/notice-feed.ts";
import type { Departure } from "../core/departure.ts";
import { type MachineWord, meaningOf } from "../core/machine-word.ts";
import { callsOfMarks } from "../core/node-notice.ts";
import type { NoticeCall } from "../core/notice-call.ts";
import { messageOf } from "../errors.ts";
import type { Executor } from "./executor.ts";

export interface NoticeDeskTools {
  readonly fleet: Fleet;
  readonly executor: Executor;
  readonly clock: Clock;
}

/**
 * Writes down what notices without an agent call for: the platform's own marks on nodes, and the
 * words of feeds. Of a hundred nodes that end together, or a word that is told a hundred times,
 * each is asked for once.
 */
export class NoticeDesk {
  readonly #tools: NoticeDeskTools;
  /** What was written, or is being written, and is not seen yet. */
  readonly #asked = new Map<string, Promise<void>>();

  constructor(tools: NoticeDeskTools) {
    this.#tools = tools;
  }

  /** Looks at the marks on all nodes. */
  lookAtMarks(): void {
    const { fleet, clock, executor } = this.#tools;
    const view = fleet.view();
    this.#forgetSeen(view.departures);
    for (const call of callsOfMarks({ ...view, at: clock.now() })) {
      this.#carryOut(call).catch((error: unknown) =>
        executor.voice.log.warn("act-failed", { error: messageOf(error) }),
      );
    }
  }

  /** See `FeedListener.onWord`. */
  async heed(word: MachineWord): Promise<WordFate> {
    const { fleet, clock } = this.#tools;
    const meaning = meaningOf(word, { ...fleet.view(), at: clock.now() });
    if (meaning.kind === "NoNode" || meaning.kind === "NotOwned") return meaning.kind;
    if (meaning.kind === "Known") return "Taken";
    await this.#carryOut(meaning);
    this.#count(word);
    return "Taken";
  }

  #count({ notice: { source, cause } }: MachineWord): void {
    const cloud = source.split("/")[0] ?? "";
    const labels = { cloud, kind: cause, source };
    this.#tools.executor.voice.metrics.count("lastcall_notices_total", labels);
  }

  #carryOut(call: NoticeCall): Promise<void> {
    const { key, write } = this.#deedOf(call);
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
    const { departure, word } = call;
    return { key: versionOf(departure), write: () => executor.notice(departure, word) };
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

/** No name holds an `@`. */
function versionOf({ name, resourceVersion }: Departure): string {
  return `${name}@${resourceVersion}`;
}
