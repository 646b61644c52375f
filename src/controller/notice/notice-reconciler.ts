import type { Clock } from "../../contracts/clock.ts";
import type { Fleet } from "../../contracts/fleet.ts";
import type { NoticeFate } from "../../contracts/notice-feed.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import type { Departure } from "../../core/departure/departure.ts";
import {
  type InstanceNotice,
  type MachineScene,
  type NoticeResolution,
  resolveNotice,
} from "../../core/notice/instance-notice.ts";
import { callsOfMarks, type NoticeCall } from "../../core/notice/node-notice.ts";
import { between, type Millis, millis, plus } from "../../core/time/time.ts";
import { LastcallError, messageOf } from "../../errors.ts";
import type { Executor } from "../executor.ts";
import { nextChange } from "./next-change.ts";

export interface NoticeReconcilerTools {
  readonly fleet: Fleet;
  readonly executor: Executor;
  readonly clock: Clock;
}

/** What a call has written. The node is its uid. */
interface Deed {
  readonly key: string;
  readonly node: string;
  readonly write: () => Promise<void>;
}

/** A watch that lags by more is no reason to hold a word back: it is to be told again. */
const watchLagMs: Millis = millis(2000);

/**
 * Writes down what notices without an agent call for: the platform's own marks on nodes, and the
 * words of feeds. Of a hundred nodes that end together, or a word that is told a hundred times,
 * each is asked for once.
 */
export class NoticeReconciler {
  readonly #tools: NoticeReconcilerTools;
  /** What was written, or is being written, and is not seen yet. */
  readonly #asked = new Map<string, { readonly node: string; readonly written: Promise<void> }>();
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(tools: NoticeReconcilerTools) {
    this.#tools = tools;
  }

  /** Looks at the marks on some nodes, or on all. What fails is for the next look at all to try again. */
  lookAtMarks(some?: readonly NodeFacts[]): void {
    const { fleet, executor } = this.#tools;
    if (some === undefined) this.#forgetSeen();
    for (const call of callsOfMarks(some ?? fleet.view().nodes, this.#scene())) {
      this.#carryOut(call).catch((error: unknown) =>
        executor.telemetry.log.warn("act-failed", { error: messageOf(error) }),
      );
    }
  }

  /**
   * See `FeedListener.onNotice`. Words of one machine take turns: the second is judged by what has come of
   * the first, which may be a departure of a cause that the policy ignores.
   */
  async handle(instanceNotice: InstanceNotice): Promise<NoticeFate> {
    const turn = (this.#turns.get(instanceNotice.machine) ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.#untilKnown(instanceNotice));
    this.#turns.set(instanceNotice.machine, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(instanceNotice.machine) === turn)
        this.#turns.delete(instanceNotice.machine);
    }
  }

  /** What is written counts when the watch shows it: another's departure may have had the name. */
  async #untilKnown(instanceNotice: InstanceNotice): Promise<NoticeFate> {
    const { fleet, clock } = this.#tools;
    let asked: string | undefined;
    for (let until = clock.now(); asked === undefined || clock.now() < until; ) {
      const meaning = this.#meaning(instanceNotice);
      if (meaning.kind === "Known") return "Taken";
      if (meaning.kind === "Undoing") throw busy(instanceNotice);
      if (!isCall(meaning)) return meaning.kind;
      const { key } = this.#deedOf(meaning);
      if (key === asked) {
        await nextChange({ fleet, clock, mostMs: between(clock.now(), until) });
        continue;
      }
      await this.#carryOut(meaning);
      if (asked === undefined && instanceNotice.notice.withdrawn !== true)
        this.#count(instanceNotice);
      asked = key;
      until = plus(clock.now(), watchLagMs);
    }
    throw new LastcallError(
      "CONFLICT",
      `Cannot tell what became of the notice for ${instanceNotice.machine}: the watch shows no departure for it, expected one`,
    );
  }

  #meaning(instanceNotice: InstanceNotice): NoticeResolution {
    return resolveNotice(instanceNotice, this.#scene());
  }

  #scene(): MachineScene {
    const { fleet, clock } = this.#tools;
    return {
      policies: fleet.policies(),
      at: clock.now(),
      nodeOf: (machine) => fleet.nodeOf(machine),
      departuresOf: (nodeUid) => fleet.departuresOf(nodeUid),
      departureNamed: (name) => fleet.departureNamed(name),
    };
  }

  /** A source begins with its cloud and its way: `aws/queue/spot-interruption`. */
  #count({ notice }: InstanceNotice): void {
    const [cloud = "", source = ""] = notice.source.split("/");
    const labels = { cloud, kind: notice.cause, source };
    this.#tools.executor.telemetry.metrics.count("lastcall_notices_total", labels);
  }

  #carryOut(call: NoticeCall): Promise<void> {
    const { key, node, write } = this.#deedOf(call);
    const asked = this.#asked.get(key);
    if (asked !== undefined && !this.#isSeen(key, node)) return asked.written;
    const written = write().catch((error: unknown) => {
      if (this.#asked.get(key)?.written === written) this.#asked.delete(key);
      throw error;
    });
    this.#asked.set(key, { node, written });
    return written;
  }

  /** The key is the name to be seen, or the version of the departure that is to change. */
  #deedOf(call: NoticeCall): Deed {
    const { executor } = this.#tools;
    if (call.kind === "Make") {
      const { name, node } = call.order;
      return { key: name, node: node.uid, write: () => executor.schedule(call.order) };
    }
    const { departure } = call;
    const about = { key: versionOf(departure), node: departure.node.uid };
    if (call.kind === "Withdraw") {
      return { ...about, write: () => executor.withdraw(departure, call.at) };
    }
    return { ...about, write: () => executor.notice(departure, call.update) };
  }

  #forgetSeen(): void {
    for (const [key, { node }] of this.#asked) {
      if (this.#isSeen(key, node)) this.#asked.delete(key);
    }
  }

  #isSeen(key: string, node: string): boolean {
    const there = this.#tools.fleet.departuresOf(node);
    return key.includes("@")
      ? there.every((one) => versionOf(one) !== key)
      : there.some(({ name }) => name === key);
  }
}

/** It is told again; by then the departure has ended. */
function busy({ machine }: InstanceNotice): LastcallError {
  return new LastcallError(
    "CONFLICT",
    `Cannot write down the notice for ${machine}: its node's departure is being taken back, expected an end of that`,
  );
}

function isCall(meaning: NoticeResolution): meaning is NoticeCall {
  return meaning.kind === "Make" || meaning.kind === "Force" || meaning.kind === "Withdraw";
}

/** No name holds an `@`. */
function versionOf({ name, resourceVersion }: Departure): string {
  return `${name}@${resourceVersion}`;
}
