import type { Clock } from "../../contracts/clock.ts";
import type { NoticeDelivery } from "../../contracts/cloud/notice-feed.ts";
import type { Fleet } from "../../contracts/fleet.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import type { Departure } from "../../core/departure/departure.ts";
import {
  type InstanceNotice,
  type MachineScene,
  type NoticeResolution,
  resolveNotice,
} from "../../core/notice/instance-notice.ts";
import { callsOfMarks, type NoticeCall } from "../../core/notice/node-notice.ts";
import { type Millis, millis } from "../../core/time/time.ts";
import { LastcallError, messageOf } from "../../errors.ts";
import type { Executor } from "../executor.ts";
import { nextChange } from "./next-change.ts";

export interface NoticeReconcilerOptions {
  readonly fleet: Fleet;
  readonly executor: Executor;
  readonly clock: Clock;
}

/** What a call has written. The node is its uid. */
interface Write {
  readonly key: string;
  readonly node: string;
  readonly write: () => Promise<void>;
}

/**
 * A watch that lags by more is no reason to keep a notice waiting: its feed is to bring it again.
 */
const watchLagMs: Millis = millis(2000);

/**
 * Writes down what notices without an agent call for: the platform's own marks on nodes, and the
 * notices of feeds. Of a hundred nodes that end together, or a notice that comes a hundred times,
 * each is asked for once.
 */
export class NoticeReconciler {
  readonly #options: NoticeReconcilerOptions;
  /** What was written, or is being written, and is not seen yet. */
  readonly #asked = new Map<string, { readonly node: string; readonly written: Promise<void> }>();
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(options: NoticeReconcilerOptions) {
    this.#options = options;
  }

  /**
   * Looks at the marks on some nodes, or on all. What fails is for the next look at all to try
   * again.
   */
  lookAtMarks(some?: readonly NodeFacts[]): void {
    const { fleet, executor } = this.#options;
    if (some === undefined) this.#forgetSeen();
    for (const call of callsOfMarks(some ?? fleet.view().nodes, this.#scene())) {
      this.#carryOut(call).catch((error: unknown) =>
        executor.telemetry.log.warn("act-failed", { error: messageOf(error) }),
      );
    }
  }

  /**
   * See `FeedListener.onNotice`. Notices of one machine are handled one by one: the second is
   * judged by what has come of the first, which may be a departure of a cause that the policy
   * ignores.
   */
  async handle(notice: InstanceNotice): Promise<NoticeDelivery> {
    const handled = (this.#queues.get(notice.machine) ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.#untilKnown(notice));
    this.#queues.set(notice.machine, handled);
    try {
      return await handled;
    } finally {
      if (this.#queues.get(notice.machine) === handled) this.#queues.delete(notice.machine);
    }
  }

  /** What is written counts when the watch shows it: another's departure may have had the name. */
  async #untilKnown(notice: InstanceNotice): Promise<NoticeDelivery> {
    const { fleet, clock } = this.#options;
    let asked: string | undefined;
    for (let untilMs = 0; asked === undefined || clock.monotonic() < untilMs; ) {
      const resolution = this.#resolve(notice);
      if (resolution.kind === "Known") return "Taken";
      if (resolution.kind === "Undoing") throw busy(notice);
      if (!isCall(resolution)) return resolution.kind;
      const { key } = this.#writeOf(resolution);
      if (key === asked) {
        await nextChange({ fleet, clock, mostMs: millis(untilMs - clock.monotonic()) });
        continue;
      }
      await this.#carryOut(resolution);
      if (asked === undefined && notice.notice.withdrawn !== true) this.#count(notice);
      asked = key;
      untilMs = clock.monotonic() + watchLagMs;
    }
    throw new LastcallError(
      "CONFLICT",
      `Cannot confirm the notice for ${notice.machine}: the watch shows no departure for it yet, retrying`,
    );
  }

  #resolve(notice: InstanceNotice): NoticeResolution {
    return resolveNotice(notice, this.#scene());
  }

  #scene(): MachineScene {
    const { fleet, clock } = this.#options;
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
    this.#options.executor.telemetry.metrics.count("lastcall_notices_total", labels);
  }

  #carryOut(call: NoticeCall): Promise<void> {
    const { key, node, write } = this.#writeOf(call);
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
  #writeOf(call: NoticeCall): Write {
    const { executor } = this.#options;
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
    const there = this.#options.fleet.departuresOf(node);
    return key.includes("@")
      ? there.every((one) => versionOf(one) !== key)
      : there.some(({ name }) => name === key);
  }
}

/** It is told again; by then the departure has ended. */
function busy({ machine }: InstanceNotice): LastcallError {
  return new LastcallError(
    "CONFLICT",
    `Cannot record the notice for ${machine}: the departure of its node is being rolled back, retrying when it has ended`,
  );
}

function isCall(resolution: NoticeResolution): resolution is NoticeCall {
  return (
    resolution.kind === "Make" || resolution.kind === "Force" || resolution.kind === "Withdraw"
  );
}

/** No name holds an `@`. */
function versionOf({ name, resourceVersion }: Departure): string {
  return `${name}@${resourceVersion}`;
}
