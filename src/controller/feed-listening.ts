import type { Clock } from "../contracts/clock.ts";
import type { FeedListener, NoticeFeed } from "../contracts/notice-feed.ts";
import { Sampler } from "../core/chance/sampler.ts";
import { isLastcallError, messageOf } from "../errors.ts";
import type { Telemetry } from "./executor.ts";
import type { LifecycleHookCompleter } from "./lifecycle-hook-completer.ts";
import type { NoticeReconciler } from "./notice-reconciler.ts";

/**
 * Sets every feed listening and gives their ends. Every trouble is counted, and one a minute of a kind is
 * said. A feed that fails against its word is a trouble, too: neither the others nor the rotation end
 * with it.
 */
export function listenToFeeds(
  feeds: readonly NoticeFeed[],
  tools: {
    readonly noticeReconciler: NoticeReconciler;
    readonly hookCompleter: LifecycleHookCompleter;
    readonly telemetry: Telemetry;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): readonly Promise<void>[] {
  const { noticeReconciler, hookCompleter, telemetry, clock } = tools;
  const sampler = new Sampler();
  const onTrouble = (error: unknown): void => {
    if (signal.aborted) return;
    const code = isLastcallError(error) ? error.code : "UNEXPECTED";
    telemetry.metrics.count("lastcall_errors_total", { code });
    const said = sampler.admit(code, clock.monotonic());
    if (said) telemetry.log.warn("feed-trouble", { code, error: messageOf(error), ...said });
  };
  const listener: FeedListener = {
    onNotice: (instanceNotice) => noticeReconciler.handle(instanceNotice),
    onHook: (hook) => hookCompleter.handle(hook, signal),
    onTrouble,
  };
  return feeds.map((feed) => feed.run(listener, signal).catch(onTrouble));
}
