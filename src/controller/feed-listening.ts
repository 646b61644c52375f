import type { Clock } from "../contracts/clock.ts";
import type { FeedListener, NoticeFeed } from "../contracts/notice-feed.ts";
import { Sampler } from "../core/chance/sampler.ts";
import { isLastcallError, messageOf } from "../errors.ts";
import type { Voice } from "./executor.ts";
import type { HookDesk } from "./hook-desk.ts";
import type { NoticeDesk } from "./notice-desk.ts";

/**
 * Sets every feed listening and gives their ends. Every trouble is counted, and one a minute of a kind is
 * said. A feed that fails against its word is a trouble, too: neither the others nor the rotation end
 * with it.
 */
export function listenToFeeds(
  feeds: readonly NoticeFeed[],
  tools: {
    readonly desk: NoticeDesk;
    readonly hookDesk: HookDesk;
    readonly voice: Voice;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): readonly Promise<void>[] {
  const { desk, hookDesk, voice, clock } = tools;
  const sampler = new Sampler();
  const onTrouble = (error: unknown): void => {
    if (signal.aborted) return;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    voice.metrics.count("lastcall_errors_total", { code });
    const said = sampler.admit(code, clock.monotonic());
    if (said) voice.log.warn("feed-trouble", { code, error: messageOf(error), ...said });
  };
  const listener: FeedListener = {
    onWord: (word) => desk.heed(word),
    onHook: (hook) => hookDesk.heed(hook, signal),
    onTrouble,
  };
  return feeds.map((feed) => feed.run(listener, signal).catch(onTrouble));
}
