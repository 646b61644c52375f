import { type Clock, nextChange } from "../../contracts/clock.ts";
import type { NoticeDelivery } from "../../contracts/cloud.ts";
import type { Fleet } from "../../contracts/cluster.ts";
import type { Telemetry } from "../../contracts/telemetry.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import type { Departure } from "../../core/departure/departure.ts";
import {
  type InstanceNotice,
  type NoticeResolution,
  resolveNotice,
} from "../../core/notice/instance-notice.ts";
import { callForNewObject } from "../../core/notice/new-node-object.ts";
import { callsOfMarks, type NoticeCall, type NoticeScene } from "../../core/notice/node-notice.ts";
import { type Millis, millis } from "../../core/time/time.ts";
import { LastcallError, messageOf } from "../../errors.ts";
import type { DepartureWriter } from "../departure-writer.ts";

export interface NoticeReconcilerOptions {
  readonly fleet: Fleet;
  readonly writer: DepartureWriter;
  readonly telemetry: Telemetry;
  readonly clock: Clock;
}

/** The write that a notice call leads to. `node` is the node's uid. */
interface Write {
  readonly key: string;
  readonly node: string;
  readonly write: () => Promise<void>;
}

/**
 * If the watch lags by more than this, the feed delivers the notice again instead of waiting.
 */
const watchLagMs: Millis = millis(2000);

/**
 * Creates or updates Departures for notices that no agent reports: the platform's taints and
 * conditions on nodes, and the notices of feeds. Writes once for each machine, however often its
 * notice is delivered.
 */
export class NoticeReconciler {
  readonly #options: NoticeReconcilerOptions;
  /** The writes that the watch does not show yet. */
  readonly #writes = new Map<string, { readonly node: string; readonly written: Promise<void> }>();
  readonly #queues = new Map<string, Promise<unknown>>();

  constructor(options: NoticeReconcilerOptions) {
    this.#options = options;
  }

  /**
   * Handles the platform's marks on some nodes, or on all nodes. Failures are retried when all
   * nodes are handled again.
   */
  lookAtMarks(some?: readonly NodeFacts[]): void {
    const { fleet } = this.#options;
    if (some === undefined) this.#forgetSeen();
    for (const call of callsOfMarks(some ?? fleet.view().nodes, this.#scene())) {
      this.#carryOutLater(call);
    }
  }

  /** Creates the departure of a noticed machine whose Node has been registered again. */
  lookAtNewObject(departure: Departure, node: NodeFacts | undefined): void {
    const call = callForNewObject(departure, node, this.#scene());
    if (call !== undefined) this.#carryOutLater(call);
  }

  /**
   * Implements `FeedListener.onNotice`. Notices for one machine are handled one after another,
   * because the second depends on the result of the first, such as a departure of a cause that the
   * policy ignores.
   */
  async handle(notice: InstanceNotice): Promise<NoticeDelivery> {
    const handled = (this.#queues.get(notice.machine) ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => this.#writeUntilSeen(notice));
    this.#queues.set(notice.machine, handled);
    try {
      return await handled;
    } finally {
      if (this.#queues.get(notice.machine) === handled) this.#queues.delete(notice.machine);
    }
  }

  /**
   * Writes until the watch shows the result: another node's departure may have had the name. A
   * machine that several Nodes name may require several writes, none of which waits for another.
   */
  async #writeUntilSeen(notice: InstanceNotice): Promise<NoticeDelivery> {
    const { fleet, clock } = this.#options;
    const asked = new Set<string>();
    for (let untilMs = 0; asked.size === 0 || clock.monotonic() < untilMs; ) {
      const resolutions = this.#resolve(notice);
      const calls = resolutions.filter(isCall);
      if (calls.length === 0) return deliveryOf(resolutions, notice);
      const unasked = calls.filter((call) => !asked.has(this.#writeOf(call).key));
      if (unasked.length === 0) {
        await nextChange({ fleet, clock, mostMs: millis(untilMs - clock.monotonic()) });
        continue;
      }
      await Promise.all(unasked.map((call) => this.#carryOut(call)));
      if (asked.size === 0 && notice.notice.withdrawn !== true) this.#count(notice);
      for (const call of unasked) asked.add(this.#writeOf(call).key);
      untilMs = clock.monotonic() + watchLagMs;
    }
    throw new LastcallError(
      "CONFLICT",
      `Cannot confirm the notice for ${notice.machine}: the watch shows no departure for it yet, retrying`,
    );
  }

  /** What the notice requires of each node of its machine; of none, if it has no node. */
  #resolve(notice: InstanceNotice): readonly NoticeResolution[] {
    const nodes = this.#options.fleet.nodesOf(notice.machine);
    const subjects = nodes.length === 0 ? [undefined] : nodes;
    return subjects.map((node) => resolveNotice(notice, { ...this.#scene(), node }));
  }

  #scene(): NoticeScene {
    const { fleet, clock } = this.#options;
    return {
      policies: fleet.policies(),
      at: clock.now(),
      departuresOf: (nodeUid) => fleet.departuresOf(nodeUid),
      departureNamed: (name) => fleet.departureNamed(name),
    };
  }

  /** A source starts with its cloud and path, such as `aws/queue/spot-interruption`. */
  #count({ notice }: InstanceNotice): void {
    const [cloud = "", source = ""] = notice.source.split("/");
    const labels = { cloud, kind: notice.cause, source };
    this.#options.telemetry.metrics.count("lastcall_notices_total", labels);
  }

  #carryOutLater(call: NoticeCall): void {
    const { log } = this.#options.telemetry;
    this.#carryOut(call).catch((error: unknown) =>
      log.warn("act-failed", { error: messageOf(error) }),
    );
  }

  #carryOut(call: NoticeCall): Promise<void> {
    const { key, node, write } = this.#writeOf(call);
    const asked = this.#writes.get(key);
    if (asked !== undefined && !this.#isSeen(key, node)) return asked.written;
    const written = write().catch((error: unknown) => {
      if (this.#writes.get(key)?.written === written) this.#writes.delete(key);
      throw error;
    });
    this.#writes.set(key, { node, written });
    return written;
  }

  /** The key is the name of a new departure, or the version of the one to change. */
  #writeOf(call: NoticeCall): Write {
    const { writer } = this.#options;
    if (call.kind === "Make") {
      const { name, node } = call.order;
      const write = async () => void (await writer.schedule(call.order));
      return { key: name, node: node.uid, write };
    }
    const { departure } = call;
    const about = { key: versionOf(departure), node: departure.node.uid };
    if (call.kind === "Withdraw") {
      return { ...about, write: () => writer.withdraw(departure, call.at) };
    }
    return { ...about, write: () => writer.notice(departure, call.update) };
  }

  #forgetSeen(): void {
    for (const [key, { node }] of this.#writes) {
      if (this.#isSeen(key, node)) this.#writes.delete(key);
    }
  }

  #isSeen(key: string, node: string): boolean {
    const there = this.#options.fleet.departuresOf(node);
    return key.includes("@")
      ? there.every((one) => versionOf(one) !== key)
      : there.some(({ name }) => name === key);
  }
}

type Other = Exclude<NoticeResolution, NoticeCall>["kind"];

/** What is said of a notice for several nodes: the first of these that holds for one of them. */
const deliveries = [
  ["TooEarly", "TooEarly"],
  ["Known", "Taken"],
  ["NotOwned", "NotOwned"],
  ["Stale", "Stale"],
  ["NoNode", "NoNode"],
] as const satisfies readonly (readonly [Other, NoticeDelivery])[];

/** The outcome once nothing is left to write. Throws if a departure is being rolled back. */
function deliveryOf(
  resolutions: readonly NoticeResolution[],
  notice: InstanceNotice,
): NoticeDelivery {
  const kinds = new Set(resolutions.map(({ kind }) => kind));
  if (kinds.has("Undoing")) throw rollingBack(notice);
  const found = deliveries.find(([kind]) => kinds.has(kind));
  return found?.[1] ?? "NoNode";
}

/** The notice is delivered again; by then the departure has ended. */
function rollingBack({ machine }: InstanceNotice): LastcallError {
  return new LastcallError(
    "CONFLICT",
    `Cannot record the notice for ${machine}: the departure of its node is being rolled back, retrying once it has ended`,
  );
}

function isCall(resolution: NoticeResolution): resolution is NoticeCall {
  return (
    resolution.kind === "Make" || resolution.kind === "Force" || resolution.kind === "Withdraw"
  );
}

/** Unambiguous, because no name contains an `@`. */
function versionOf({ name, resourceVersion }: Departure): string {
  return `${name}@${resourceVersion}`;
}
