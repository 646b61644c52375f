import type { FeedListener, NoticeFeed } from "../contracts/notice-feed.ts";
import { isLastcallError, messageOf } from "../errors.ts";
import type { Voice } from "./executor.ts";
import type { NoticeDesk } from "./notice-desk.ts";

/**
 * Sets every feed listening and gives their ends. A feed that fails against its word is counted and
 * said; neither the others nor the rotation end with it.
 */
export function listenToFeeds(
  feeds: readonly NoticeFeed[],
  { desk, voice }: { readonly desk: NoticeDesk; readonly voice: Voice },
  signal: AbortSignal,
): readonly Promise<void>[] {
  const onTrouble = (error: unknown): void => {
    if (signal.aborted) return;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    voice.metrics.count("lastcall_errors_total", { code });
    voice.log.warn("feed-trouble", { code, error: messageOf(error) });
  };
  const listener: FeedListener = { onWord: (word) => desk.heed(word), onTrouble };
  return feeds.map((feed) => feed.run(listener, signal).catch(onTrouble));
}
