import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { Clock } from "../../contracts/clock.ts";
import { type Millis, millis, seconds } from "../../core/time/time.ts";
import type { SocketRoute } from "./socket-pool.ts";

/** `Ping`: it cost no request. */
export type ProbeKind = "Ping" | "Request";

export interface ProbeAnswer {
  readonly kind: ProbeKind;
  /** Whether it came by the connection of the probe before. */
  readonly connection: "Kept" | "New";
}

/**
 * Why the connections that are open are not believed any more. `Silent`: the probe's own gave no
 * answer for so long; `Lost`: it was closed, and what is open since before the next one is tested
 * by nothing.
 */
export interface DeadConnections {
  readonly found: "Silent" | "Lost";
  /** What was sent within this time has its own limit. */
  readonly silentMs: Millis;
}

export interface ConnectionProbeOptions {
  readonly clock: Clock;
  /**
   * Resolves with any answer of the server on a connection that is kept open; aborted, it gives
   * the connection up.
   */
  readonly ask: (signal: AbortSignal) => Promise<ProbeAnswer>;
  /** A new connection answers: whatever was open with the one before may be dead, too. */
  readonly onDead: (dead: DeadConnections) => void;
}

/** ADR 0009 has the sum: the rest before a probe, its limit, and a new watch take less than 5 s. */
const restMs: Readonly<Record<ProbeKind, Millis>> = { Ping: seconds(1), Request: seconds(2) };
const shortestMs: Millis = seconds(2);
const longestMs: Millis = seconds(30);
/** A proxy that keeps no connection open has a new one each time, which then says nothing. */
const newInARowMost = 3;
/**
 * One turn of the event loop: what came while this process was busy is read before it is judged.
 */
const turnMs: Millis = millis(1);

/**
 * Finds out that connections are dead though nobody has closed them, which a watch, that only
 * listens, cannot. A server that is slow is slow on a new connection, too, and has its old ones
 * left alone. A refusal or a lost connection is found by whoever else has one.
 */
export class ConnectionProbe {
  readonly #options: ConnectionProbeOptions;
  #limitMs: Millis = shortestMs;
  /** How long the last connection was silent, until a new one has answered quickly. */
  #silentMs: Millis | undefined;
  #newInARow = 0;
  #isFirst = true;

  constructor(options: ConnectionProbeOptions) {
    this.#options = options;
  }

  /** Resolves when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let kind: ProbeKind = "Ping";
    this.#isFirst = true;
    while (!signal.aborted) {
      // At once at first: its connection is to be open for as long as those that it stands for.
      const outcome = await this.#probe(signal);
      // A new connection is asked at once.
      if (outcome === "Silent") continue;
      if (outcome !== "Failed") kind = outcome;
      await clock.sleep(restMs[kind], signal).catch(() => {});
    }
  }

  async #probe(signal: AbortSignal): Promise<ProbeKind | "Failed" | "Silent"> {
    const limitMs = this.#limitMs;
    const sentMs = this.#options.clock.monotonic();
    const outcome = await this.#answerWithin(limitMs, signal);
    if (signal.aborted || outcome === "Failed") return "Failed";
    if (outcome === "Silent") {
      this.#silentMs ??= limitMs;
      this.#limitTo(2 * limitMs);
      return "Silent";
    }
    this.#answered(this.#options.clock.monotonic() - sentMs, outcome);
    return outcome.kind;
  }

  #answered(tookMs: number, { connection }: ProbeAnswer): void {
    const silentMs = this.#silentMs;
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    this.#newInARow = connection === "New" ? this.#newInARow + 1 : 0;
    this.#limitTo(2 * tookMs);
    if (silentMs !== undefined) {
      // An answer as slow as before does not show whether the open connections live: wait for the
      // next probe.
      if (tookMs >= silentMs / 2) return;
      this.#silentMs = undefined;
      this.#options.onDead({ found: "Silent", silentMs });
    } else if (connection === "New" && !isFirst && this.#newInARow <= newInARowMost) {
      this.#options.onDead({ found: "Lost", silentMs: shortestMs });
    }
  }

  async #answerWithin(
    limitMs: Millis,
    signal: AbortSignal,
  ): Promise<ProbeAnswer | "Failed" | "Silent"> {
    const asking = new AbortController();
    const over = new AbortController();
    const giveUp = () => asking.abort();
    signal.addEventListener("abort", giveUp);
    const answer = this.#options.ask(asking.signal).catch(() => "Failed" as const);
    try {
      const outcome = await Promise.race([answer, this.#silence(limitMs, over.signal)]);
      // Only then: the connection that has answered is for the next probe.
      if (outcome === "Silent") giveUp();
      return outcome;
    } finally {
      signal.removeEventListener("abort", giveUp);
      over.abort();
    }
  }

  /** A server that is slow is given time; one that answers at once was not slow. */
  #limitTo(ms: number): void {
    this.#limitMs = millis(Math.min(longestMs, Math.max(shortestMs, ms)));
  }

  async #silence(limitMs: Millis, over: AbortSignal): Promise<"Silent"> {
    await this.#options.clock.sleep(limitMs, over).catch(() => {});
    await this.#options.clock.sleep(turnMs, over).catch(() => {});
    return "Silent";
  }
}

/**
 * A connection on which nothing is sent but PING frames of HTTP/2: the server answers them itself,
 * without a request that it would have to authorize, audit or count.
 */
export class PingSession {
  readonly #server: URL;
  #session: ClientHttp2Session | undefined;
  /** Once the server has said that it is not: a proxy in between, perhaps. */
  #isSpoken = true;

  constructor(server: URL) {
    this.#server = server;
    this.#isSpoken = server.protocol === "https:";
  }

  /**
   * By the connection of the ping before, or by a new one; undefined where the server does not
   * speak HTTP/2. Rejects where it cannot be reached.
   */
  async ping(tls: SocketRoute["tls"], signal: AbortSignal): Promise<"Kept" | "New" | undefined> {
    if (!this.#isSpoken) return undefined;
    const kept = this.#usable();
    const session = kept ?? (await this.#open(tls, signal));
    this.#session = session;
    if (session === undefined) return undefined;
    await pinged(session, signal);
    return kept === undefined ? "New" : "Kept";
  }

  close(): void {
    this.#session?.destroy();
  }

  /** One that was given up, or that the server is about to close, is none. */
  #usable(): ClientHttp2Session | undefined {
    return this.#session?.destroyed || this.#session?.closed ? undefined : this.#session;
  }

  async #open(
    tls: SocketRoute["tls"],
    signal: AbortSignal,
  ): Promise<ClientHttp2Session | undefined> {
    const socket = await secureSocket(this.#server, tls, signal);
    if (socket.alpnProtocol !== "h2") {
      this.#isSpoken = false;
      socket.destroy();
      return undefined;
    }
    const session = connectHttp2(this.#server, { createConnection: () => socket });
    // The ping that an error ends reports it, and the next ping gets a new session.
    session.on("error", () => {});
    return session;
  }
}

function secureSocket(
  server: URL,
  tls: SocketRoute["tls"],
  signal: AbortSignal,
): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const host = server.hostname.replace(/^\[|\]$/g, "");
    const port = Number(server.port || 443);
    const ALPNProtocols = ["h2", "http/1.1"];
    const socket = connectTls({ host, port, ALPNProtocols, ...tls });
    const abort = () => socket.destroy(new Error("The probe has been given up"));
    signal.addEventListener("abort", abort, { once: true });
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("The connection was closed")));
    socket.once("secureConnect", () => {
      signal.removeEventListener("abort", abort);
      resolve(socket);
    });
  });
}

/** Given up, it takes its session along: the next ping needs another. */
function pinged(session: ClientHttp2Session, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      session.destroy();
      reject(new Error("The ping has been given up"));
    };
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    const answered = (error: Error | null) => {
      signal.removeEventListener("abort", abort);
      if (error === null) resolve();
      else reject(error);
    };
    if (session.destroyed || !session.ping(answered)) answered(new Error("No ping can be sent"));
  });
}
