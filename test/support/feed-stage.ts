import type {
  FeedListener,
  LifecycleHooks,
  NoticeDelivery,
  NoticeFeed,
} from "../../src/contracts/cloud.ts";
import type { InstanceNotice } from "../../src/core/notice/instance-notice.ts";
import { type Millis, plus, seconds } from "../../src/core/time/time.ts";
import type { LastcallError } from "../../src/errors.ts";
import { ModelWorld, spotPolicy, webWorkload } from "./model-world.ts";

/** A feed that reports what a test tells it to. */
class ScriptedFeed implements NoticeFeed {
  #listener: FeedListener | undefined;
  listening = 0;

  async run(listener: FeedListener, signal: AbortSignal): Promise<void> {
    this.#listener = listener;
    this.listening += 1;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    this.listening -= 1;
  }

  get listener(): FeedListener {
    if (this.#listener === undefined) throw new Error("nobody listens");
    return this.#listener;
  }
}

export interface Stage {
  readonly world: ModelWorld;
  readonly feed: ScriptedFeed;
  word(name: string, fields?: Partial<InstanceNotice["notice"]>): InstanceNotice;
  /** Reports a notice and lets a second pass. */
  tell(word: InstanceNotice): Promise<NoticeDelivery>;
  stop(): Promise<void>;
}

/**
 * A model cluster of three Spot nodes, with its controller and a feed that the controller reads.
 */
export async function stage(
  lifetime: Readonly<Record<string, string>> = {},
  { hooks, joinWithinMs }: { readonly hooks?: LifecycleHooks; readonly joinWithinMs?: Millis } = {},
): Promise<Stage> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  spotPolicy(world, { lifetime });
  const feed = new ScriptedFeed();
  const stop = new AbortController();
  const running = world.startController(stop.signal, {
    feeds: [feed],
    ...(hooks && { hooks }),
    ...(joinWithinMs && { joinWithinMs }),
  });
  await world.pass(seconds(30));
  return {
    world,
    feed,
    word: (name, fields) => ({
      machine: `gce://demo/a/${name}`,
      notice: {
        cause: "Preempted",
        noticedAt: world.clock.now(),
        deadlineAt: plus(world.clock.now(), seconds(30)),
        source: "test/feed",
        eventId: `event-${name}`,
        ...fields,
      },
    }),
    tell: async (word) => {
      const told = Promise.allSettled([feed.listener.onNotice(word)]);
      await world.pass(seconds(1));
      const [delivery] = await told;
      if (delivery.status === "rejected") throw delivery.reason;
      return delivery.value;
    },
    stop: async () => {
      stop.abort();
      await running;
      if (feed.listening !== 0) throw new Error("somebody still listens, expected nobody");
    },
  };
}

/** As a feed does: reports a notice again if it could not be written. */
export async function toldUntilTaken(tell: Stage["tell"], word: InstanceNotice): Promise<boolean> {
  for (let attempt = 0; attempt < 10; attempt += 1) {
    const delivery = await tell(word).catch((error: LastcallError) => error.code);
    if (delivery === "Taken") return true;
    if (delivery !== "CONFLICT") throw new Error(`${word.machine}: ${delivery}, expected Taken`);
  }
  return false;
}
