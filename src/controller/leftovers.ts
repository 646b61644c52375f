import type { Clock } from "../contracts/clock.ts";
import type { ClusterPorts, Fleet, NodePods, Placeholders } from "../contracts/cluster.ts";
import type { Log, Telemetry } from "../contracts/telemetry.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import { type FailedPod, isOfEarlierMachine } from "../core/cluster/pod.ts";
import { type Departure, isLive } from "../core/departure/departure.ts";
import { orphanPlaceholders } from "../core/drain/placeholder-plan.ts";
import { selectPolicy } from "../core/policy/policy.ts";
import { type Millis, minutes, plus, seconds } from "../core/time/time.ts";
import { LastcallError, messageOf } from "../errors.ts";

/** Runs remove their own placeholders; this sweep removes those that a crash has left behind. */
const sweepEveryMs: Millis = minutes(10);

export interface SweepOptions {
  readonly placeholders: Placeholders;
  readonly log: Log;
  readonly clock: Clock;
}

/** Deletes placeholders without a live departure: after becoming leader, then periodically. */
export class PlaceholderSweep {
  readonly #options: SweepOptions;
  #sweptMs = Number.NEGATIVE_INFINITY;

  constructor(options: SweepOptions) {
    this.#options = options;
  }

  /** `departures` is called after the list, so that it is the newer of the two. */
  async run(departures: () => readonly Departure[]): Promise<void> {
    const { placeholders, log, clock } = this.#options;
    if (clock.monotonic() - this.#sweptMs < sweepEveryMs) return;
    this.#sweptMs = clock.monotonic();
    const found = await placeholders.list();
    for (const name of orphanPlaceholders(found, departures())) {
      await placeholders.remove(name);
      log.warn("orphaned-placeholder-removed", { name });
    }
  }
}

/** The age at which a Node is checked; it is busy before that, and there is no hurry. */
const lookAfterMs: Millis = seconds(30);
const lookEveryMs: Millis = seconds(30);
/** For more nodes than this, the failed pods of all nodes are listed at once. */
const mostLists = 20;

export interface FailedPodSweepOptions {
  readonly fleet: Pick<Fleet, "view" | "node">;
  readonly pods: Pick<NodePods, "failed" | "remove">;
  readonly log: Log;
  readonly clock: Clock;
}

/**
 * Removes the Failed pods that a terminated machine has left behind once another machine has its
 * name: Kubernetes garbage-collects such pods only if the Node is gone. Checks each Node once per
 * term, because a machine that is gone leaves no further pods.
 */
export class FailedPodSweep {
  readonly #options: FailedPodSweepOptions;
  /** The uids of the nodes that were checked. */
  #done: ReadonlySet<string> = new Set();

  constructor(options: FailedPodSweepOptions) {
    this.#options = options;
  }

  /** Runs in the background until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { log, clock } = this.#options;
    for (;;) {
      await clock.sleep(lookEveryMs, signal);
      try {
        await this.#look(signal);
      } catch (error) {
        // The next round retries.
        signal.throwIfAborted();
        log.warn("failed-pods-not-removed", { error: messageOf(error) });
      }
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { nodes } = this.#options.fleet.view();
    this.#done = new Set(nodes.flatMap(({ uid }) => (this.#done.has(uid) ? uid : [])));
    const due = nodes.filter((node) => this.#isDue(node));
    const places = due.length > mostLists ? [undefined] : due.map(({ name }) => name);
    for (const place of places) {
      const about = place === undefined ? due : due.filter(({ name }) => name === place);
      await this.#lookAt(about, place, signal);
      this.#done = new Set([...this.#done, ...about.map(({ uid }) => uid)]);
    }
  }

  /** Whether to check the node. A policy in dry run removes nothing. */
  #isDue(node: NodeFacts): boolean {
    const { fleet, clock } = this.#options;
    const { uid, createdAt } = node;
    if (createdAt === undefined || this.#done.has(uid)) return false;
    if (plus(createdAt, lookAfterMs) > clock.now()) return false;
    return selectPolicy(node, fleet.view().policies)?.policy.dryRun === false;
  }

  async #lookAt(
    about: readonly NodeFacts[],
    place: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { pods, fleet } = this.#options;
    const byName = new Map(about.map((node) => [node.name, node]));
    for (const pod of await pods.failed(place, signal)) {
      const node = byName.get(pod.nodeName ?? "");
      if (node === undefined || !isOfEarlierMachine(pod, node)) continue;
      signal.throwIfAborted();
      if (fleet.node(node.name)?.uid === node.uid) await this.#remove(pod);
    }
  }

  /** Throws retryable errors, so that the next round retries; logs a refusal once. */
  async #remove(pod: FailedPod): Promise<void> {
    const { pods, log } = this.#options;
    const answer = await pods.remove(pod, { graceSeconds: () => undefined });
    const { namespace, name, nodeName: node } = pod;
    if (answer.kind === "Accepted") {
      log.info("failed-pod-removed", { namespace, pod: name, node });
    } else if (answer.kind !== "Gone" && answer.kind !== "Replaced") {
      const said = "message" in answer ? answer.message : answer.kind;
      const problem = `Cannot remove the failed pod ${namespace}/${name}: ${said}`;
      if (answer.kind !== "Refused") throw new LastcallError("API_UNREACHABLE", problem);
      log.warn("failed-pod-not-removed", { error: problem });
    }
  }
}

/**
 * Uncordons a node whose departure no longer exists. Reads the departure first, because the watch
 * may not show one that was just created.
 */
export async function clearOrphan(
  node: NodeFacts,
  departure: string,
  {
    store,
    marks,
    telemetry,
  }: Pick<ClusterPorts, "store" | "marks"> & { readonly telemetry: Telemetry },
): Promise<void> {
  const found = await store.read(departure);
  const live = found.kind === "Done" && isLive(found.departure);
  if (live && found.departure.node.uid === node.uid) return;
  await marks.uncordon({ name: node.name, uid: node.uid, departure });
  telemetry.log.warn("orphaned-cordon-cleared", { node: node.name, departure });
}
