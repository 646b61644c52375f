import { once } from "node:events";
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { constants, createGzip, type Gzip } from "node:zlib";
import type { PageStream } from "../contracts/http-route.ts";

/**
 * So many messages wait for a page at most, beside what is under way to it. Of thousands of nodes
 * each is some megabytes; a page that is cut off comes back, and is told all of them in one.
 */
const mostWaiting = 4;

export interface StreamExchange {
  readonly response: ServerResponse;
  readonly headers: OutgoingHttpHeaders;
  /** Packed as it is sent: a picture of a thousand nodes is a tenth of its size then. */
  readonly isPacked: boolean;
}

/** Answers with a stream until the page goes away, or does not read what it is sent. */
export function sendStream({ type, open }: PageStream, exchange: StreamExchange): void {
  const { response, headers, isPacked } = exchange;
  response.writeHead(200, {
    ...headers,
    "content-type": type,
    ...(isPacked && { "content-encoding": "gzip" }),
  });
  response.flushHeaders();
  const gzip = isPacked ? createGzip({ level: 4 }) : undefined;
  gzip?.on("error", () => response.destroy());
  gzip?.pipe(response);
  const over = new AbortController();
  const writer = new MessageWriter({ response, gzip, signal: over.signal });
  const leave = open({ send: (parts) => writer.add(parts) });
  response.once("close", () => {
    over.abort();
    leave();
    gzip?.destroy();
  });
}

interface MessageTarget {
  readonly response: ServerResponse;
  readonly gzip: Gzip | undefined;
  readonly signal: AbortSignal;
}

/** Writes messages one after the other, each part when the one before has been taken. */
class MessageWriter {
  readonly #target: MessageTarget;
  readonly #waiting: Iterable<string>[] = [];
  #isWriting = false;

  constructor(target: MessageTarget) {
    this.#target = target;
  }

  add(parts: Iterable<string>): void {
    if (this.#waiting.length >= mostWaiting) {
      this.#target.response.destroy();
      return;
    }
    this.#waiting.push(parts);
    // What fails is the connection, whose end is heard by itself.
    if (!this.#isWriting) this.#write().catch(() => this.#target.response.destroy());
  }

  async #write(): Promise<void> {
    const { response, gzip, signal } = this.#target;
    const stream = gzip ?? response;
    this.#isWriting = true;
    for (let parts = this.#waiting.shift(); parts !== undefined; parts = this.#waiting.shift()) {
      for (const part of parts) {
        if (signal.aborted) return;
        if (!stream.write(part)) await once(stream, "drain", { signal });
      }
      gzip?.flush(constants.Z_SYNC_FLUSH);
    }
    this.#isWriting = false;
  }
}
