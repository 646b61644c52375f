import type { FeedListener, HookDelivery, NoticeDelivery } from "../../src/contracts/cloud.ts";
import type { InstanceNotice, LifecycleHook } from "../../src/core/notice/instance-notice.ts";
import type { LastcallError } from "../../src/errors.ts";

/**
 * The listener of a feed: a cluster that accepts notices by machine, unless it cannot be written.
 */
export class QueueListener implements FeedListener {
  readonly words: InstanceNotice[] = [];
  readonly troubles: LastcallError[] = [];
  fault: LastcallError | undefined;
  deliveries: Readonly<Record<string, NoticeDelivery>>;

  readonly hooks: LifecycleHook[] = [];
  hookFate: HookDelivery = "Ended";
  /** Until this is called, a hook waits. */
  letHooksEnd: () => void = () => {};
  #hooksMayEnd: Promise<void> = Promise.resolve();

  constructor(deliveries: Readonly<Record<string, NoticeDelivery>>) {
    this.deliveries = deliveries;
  }

  async onNotice(word: InstanceNotice): Promise<NoticeDelivery> {
    if (this.fault !== undefined) throw this.fault;
    this.words.push(word);
    return this.deliveries[word.machine] ?? "NoNode";
  }

  holdHooks(): void {
    this.#hooksMayEnd = new Promise((resolve) => {
      this.letHooksEnd = resolve;
    });
  }

  async onHook(hook: LifecycleHook): Promise<HookDelivery> {
    if (this.fault !== undefined) throw this.fault;
    this.hooks.push(hook);
    await this.#hooksMayEnd;
    return this.hookFate;
  }

  onError(error: LastcallError): void {
    this.troubles.push(error);
  }

  codes(): string[] {
    return [...new Set(this.troubles.map(({ code }) => code))];
  }
}
