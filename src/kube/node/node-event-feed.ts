import type { Clock } from "../../contracts/clock.ts";
import type { FeedListener, NoticeFeed } from "../../contracts/cloud.ts";
import type { Fleet } from "../../contracts/cluster.ts";
import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import type { Rng } from "../../core/chance/chance.ts";
import { type NodeFacts, parseProviderId } from "../../core/cluster/node.ts";
import { fieldsOf, instantOf, textOf } from "../../core/json/json-field.ts";
import { noticeEventReasons, noticeOfEvent } from "../../core/notice/node-notice.ts";
import { type Instant, type Millis, minutes, seconds } from "../../core/time/time.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { eventsPath } from "../object/api-call.ts";
import { Reflector } from "../watch/reflector.ts";

export interface NodeEventFeedOptions {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly fleet: Pick<Fleet, "view" | "node" | "onChange">;
}

/** The parts of an Event that are kept. */
interface NodeEvent {
  readonly node: string;
  readonly reason: string;
  readonly message: string;
  /** When it was last observed. */
  readonly at: Instant;
}

/** A notice that came too early, or could not be written, is redelivered after this. */
const againMs: Millis = seconds(1);

/** A missing permission may be granted later: the watch is retried after this. */
const refusedMs: Millis = minutes(1);

/**
 * The Events that AKS writes about a Node that Azure takes, for nodes without a condition for it.
 * Sends no requests until a node of Azure is seen. An Event is renewed as long as it holds, but
 * each notice is delivered once.
 */
export class NodeEventFeed implements NoticeFeed {
  readonly #options: NodeEventFeedOptions;
  /** What was delivered for each Event that still exists, by the Event's key. */
  readonly #told = new Map<string, string>();

  constructor(options: NodeEventFeedOptions) {
    this.#options = options;
  }

  async run(listener: FeedListener, signal: AbortSignal): Promise<void> {
    await this.#untilAzureIsSeen(signal);
    if (signal.aborted) return;
    await Promise.all(noticeEventReasons.map((reason) => this.#follow(reason, listener, signal)));
  }

  async #untilAzureIsSeen(signal: AbortSignal): Promise<void> {
    const { fleet } = this.#options;
    const seen = Promise.withResolvers<void>();
    const look = (nodes: Iterable<NodeFacts>): void => {
      for (const { providerID = "" } of nodes) if (isOfAzure(providerID)) seen.resolve();
    };
    // Checks only the nodes that have changed, because a large fleet changes all the time.
    const stop = fleet.onChange(({ nodes }) => {
      look([...nodes].flatMap((name) => fleet.node(name) ?? []));
    });
    signal.addEventListener("abort", () => seen.resolve(), { once: true });
    if (signal.aborted) seen.resolve();
    look(fleet.view().nodes);
    await seen.promise;
    stop();
  }

  async #follow(reason: string, listener: FeedListener, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const watch = this.#watchOf(reason, listener, signal);
      await watch.run(signal).catch((error: unknown) => listener.onError(faultOf(error)));
      await clock.sleep(refusedMs, signal).catch(() => undefined);
    }
  }

  #watchOf(reason: string, listener: FeedListener, signal: AbortSignal): Reflector<NodeEvent> {
    const { api, clock, rng } = this.#options;
    return new Reflector<NodeEvent>({
      ...{ api, clock, rng, path: eventsPath, translate: translateEvent },
      query: { fieldSelector: `involvedObject.kind=Node,reason=${reason}` },
      onError: (error) => listener.onError(error),
      onSkip: ({ error }) => listener.onError(faultOf(error)),
      onChange: (change) => {
        if (change.kind === "Removed") this.#told.delete(change.key);
        else void this.#tell(change, listener, signal);
      },
    });
  }

  async #tell(
    { key, item: event }: { readonly key: string; readonly item: NodeEvent },
    listener: FeedListener,
    signal: AbortSignal,
  ): Promise<void> {
    const { fleet, clock } = this.#options;
    const machine = fleet.node(event.node)?.providerID;
    const notice = noticeOfEvent(event, event.at);
    if (machine === undefined || notice === undefined) return;
    const what = `${machine} ${notice.eventId}`;
    if (this.#told.get(key) === what) return;
    this.#told.set(key, what);
    while (!signal.aborted) {
      try {
        const delivery = await listener.onNotice({ machine, notice });
        if (delivery !== "TooEarly") return;
      } catch (error) {
        if (!signal.aborted) listener.onError(faultOf(error));
      }
      await clock.sleep(againMs, signal).catch(() => undefined);
    }
  }
}

function translateEvent(object: KubeObject): NodeEvent {
  const event = fieldsOf(object);
  const { creationTimestamp } = fieldsOf(event.metadata);
  const series = fieldsOf(event.series).lastObservedTime;
  const times = [event.lastTimestamp, series, event.eventTime, creationTimestamp];
  const at = times.map(instantOf).find((one) => one !== undefined);
  const node = textOf(fieldsOf(event.involvedObject).name);
  if (at === undefined || node === undefined) {
    throw new LastcallError(
      "NOTICE_UNREADABLE",
      `Cannot read the Event ${textOf(fieldsOf(event.metadata).name)}: it has no time or names no Node`,
    );
  }
  return { node, reason: textOf(event.reason) ?? "", message: textOf(event.message) ?? "", at };
}

function isOfAzure(providerID: string): boolean {
  return parseProviderId(providerID)?.cloud === "azure";
}

function faultOf(error: unknown): LastcallError {
  return isLastcallError(error) ? error : new LastcallError("BROKEN_INVARIANT", messageOf(error));
}
