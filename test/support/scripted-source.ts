import type { CloudName } from "../../src/cloud/facts/known-clouds.ts";
import type { Clock } from "../../src/contracts/clock.ts";
import type { NoticeSink, NoticeSource } from "../../src/contracts/cloud.ts";
import type { Notice } from "../../src/core/notice/notice.ts";
import { instant } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";

/** A cloud that reports what a test tells it to, on two channels. */
export class ScriptedSource implements NoticeSource {
  readonly cloud: CloudName;
  readonly channels = ["aws/a", "aws/b"];
  readonly #clock: Clock;
  #sink: NoticeSink | undefined;
  readonly acknowledged: string[] = [];
  /** Thrown by the next acknowledgement. */
  refusal: LastcallError | undefined;

  constructor(clock: Clock, cloud: CloudName = "aws") {
    this.cloud = cloud;
    this.#clock = clock;
  }

  acknowledge(eventId: string): Promise<void> {
    const { refusal } = this;
    this.refusal = undefined;
    if (refusal !== undefined) return Promise.reject(refusal);
    this.acknowledged.push(eventId);
    return Promise.resolve();
  }

  run(sink: NoticeSink, signal: AbortSignal): Promise<void> {
    this.#sink = sink;
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  /** `skewMs`: by how much the agent's clock is ahead of the cloud's. */
  say(channel: string, notices: readonly Notice[], skewMs?: number): void {
    const at = instant(this.#clock.now() - (skewMs ?? 0));
    const reading = { kind: "Read", notices, ignored: [], problems: [] } as const;
    this.#sink?.onTurn(channel);
    this.#sink?.onReading({ channel, reading, at, skewMs });
  }

  fail(code: "CLOUD_UNREACHABLE" | "NOTICE_UNREADABLE"): void {
    this.#sink?.onError("aws/a", new LastcallError(code, `Cannot ask: ${code}`));
  }
}
