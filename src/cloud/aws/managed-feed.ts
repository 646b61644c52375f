import type { FeedListener, NoticeFeed } from "../../contracts/cloud/notices.ts";
import type { TaggedMachines } from "./tagged-machines.ts";

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
