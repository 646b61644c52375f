import type {
  KubeAnswer,
  KubeApi,
  KubeRequest,
  KubeWatchEvent,
  KubeWatchRequest,
} from "../../src/contracts/kube-api.ts";
import { LastcallError } from "../../src/errors.ts";

export type AnswerScript = (request: KubeRequest) => KubeAnswer | Error | Promise<KubeAnswer>;

/** An open watch, fed by the test. */
export class ScriptedWatch {
  readonly request: KubeWatchRequest;
  closed = false;
  readonly #events: KubeWatchEvent[] = [];
  #finished: "Open" | "Ended" | Error = "Open";
  #wake: () => void = () => {};

  constructor(request: KubeWatchRequest) {
    this.request = request;
    request.signal.addEventListener("abort", () => this.end());
  }

  push(...events: KubeWatchEvent[]): void {
    this.#events.push(...events);
    this.#wake();
  }

  /** The server ends it, or the connection drops; the reader sees no difference. */
  end(): void {
    if (this.#finished === "Open") this.#finished = "Ended";
    this.#wake();
  }

  fail(error: Error): void {
    this.#finished = error;
    this.#wake();
  }

  async *read(): AsyncGenerator<KubeWatchEvent, void, void> {
    try {
      for (;;) {
        for (let next = this.#events.shift(); next; next = this.#events.shift()) yield next;
        if (this.#finished instanceof Error) throw this.#finished;
        if (this.#finished === "Ended") return;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.closed = true;
    }
  }
}

/** An API in memory that responds as a test specifies. */
export class ScriptedApi implements KubeApi {
  readonly sent: KubeRequest[] = [];
  readonly watches: ScriptedWatch[] = [];
  /** Produces the responses; may be replaced at any time. */
  answer: AnswerScript;
  /** Called with each watch as it opens. */
  onWatch: (watch: ScriptedWatch) => void = () => {};

  constructor(answer: AnswerScript) {
    this.answer = answer;
  }

  /** The latest watch. */
  get watching(): ScriptedWatch {
    const watch = this.watches.at(-1);
    if (watch === undefined) throw new Error("No watch was opened");
    return watch;
  }

  async send(request: KubeRequest): Promise<KubeAnswer> {
    this.sent.push(request);
    if (request.signal?.aborted) throw new LastcallError("INTERRUPTED", "interrupted");
    const interrupted = new Promise<never>((_, reject) => {
      const abort = () => reject(new LastcallError("INTERRUPTED", "interrupted"));
      request.signal?.addEventListener("abort", abort, { once: true });
    });
    interrupted.catch(() => {});
    const answer = await Promise.race([this.answer(request), interrupted]);
    if (answer instanceof Error) throw answer;
    return answer;
  }

  watch(request: KubeWatchRequest): AsyncIterable<KubeWatchEvent> {
    const watch = new ScriptedWatch(request);
    this.watches.push(watch);
    this.onWatch(watch);
    return watch.read();
  }
}

export function unreachable(): LastcallError {
  return new LastcallError("API_UNREACHABLE", "Cannot reach the server: it is gone, expected one");
}
