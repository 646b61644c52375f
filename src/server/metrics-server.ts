import type { Clock } from "../contracts/clock.ts";
import type { KeyPair, Routes, Serve } from "../contracts/http-route.ts";
import { seconds } from "../core/time/time.ts";

export interface MetricsServerOptions {
  readonly address: string;
  readonly routes: Routes;
  readonly serve: Serve;
  /** Reads the certificate and its key; absent: plain HTTP. */
  readonly readPair?: (() => Promise<KeyPair>) | undefined;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** Certificates are replaced days before they expire. */
const lookMs = seconds(30);

/**
 * Serves one address for the lifetime of the process: it listens again when the certificate is
 * replaced, and retries if it could not listen.
 */
export class MetricsServer {
  readonly #options: MetricsServerOptions;
  readonly #ending = new AbortController();
  #looking: Promise<void> | undefined;
  #server: Awaited<ReturnType<Serve>> | undefined;
  #pair: KeyPair | undefined;

  constructor(options: MetricsServerOptions) {
    this.#options = options;
  }

  /** Throws what `serve` and `readPair` throw. */
  async listen(): Promise<void> {
    const { address, routes, serve, readPair } = this.#options;
    const pair = await readPair?.();
    if (this.#server !== undefined && isSame(pair, this.#pair)) return;
    await this.#leave();
    this.#server = await serve(address, routes, pair);
    this.#pair = pair;
  }

  /** Checks every half minute from now on. A failure is reported and leaves the server as it is. */
  keep(): void {
    this.#looking ??= this.#look(this.#ending.signal);
  }

  /** Closes the server permanently. */
  async close(): Promise<void> {
    this.#ending.abort();
    await this.#looking;
    await this.#leave();
  }

  /** The port that it listens on; undefined if it does not listen. */
  get port(): number | undefined {
    return this.#server?.port;
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { clock, readPair, onError } = this.#options;
    while (readPair !== undefined || this.#server === undefined) {
      await clock.sleep(lookMs, signal).catch(() => undefined);
      if (signal.aborted) return;
      await this.listen().catch(onError);
    }
  }

  async #leave(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    await server?.close();
  }
}

function isSame(a: KeyPair | undefined, b: KeyPair | undefined): boolean {
  return a?.cert === b?.cert && a?.key === b?.key;
}
