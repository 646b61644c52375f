import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { isIP } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";
import type { Clock } from "../../contracts/clock.ts";
import { type Millis, millis, seconds } from "../../core/time/time.ts";
import type { SocketRoute } from "./socket-pool.ts";

/** `Ping` needs no request. */
export type ProbeKind = "Ping" | "Request";

export interface ProbeAnswer {
  readonly kind: ProbeKind;
  /** Whether the connection of the previous probe was used. */
  readonly connection: "Kept" | "New";
}

/**
 * Why open connections count as dead. `Silent`: the probe's connection did not respond. `Lost`: it
 * was closed, so that connections older than the next one are not covered by a probe.
 */
export interface DeadConnections {
  readonly found: "Silent" | "Lost";
  /** Requests sent within this time have their own timeout. */
  readonly silentMs: Millis;
}

export interface ConnectionProbeOptions {
  readonly clock: Clock;
  /**
   * Resolves with any response of the server on a persistent connection. Drops the connection when
   * aborted.
   */
  readonly ask: (signal: AbortSignal) => Promise<ProbeAnswer>;
  /** Called if a new connection responds: connections as old as the previous one may be dead. */
  readonly onDead: (dead: DeadConnections) => void;
  /**
   * Called when a probe has had no answer for this long, once until one is answered: the server
   * may hang, or only the connection. However slow its answers were, people are told within
   * `toldWithinMs` of the last.
   */
  readonly onSilent?: ((silentMs: Millis) => void) | undefined;
}

/** ADR 0009: the pause before a probe, its timeout and a new watch take less than 5 s. */
const restMs: Readonly<Record<ProbeKind, Millis>> = { Ping: seconds(1), Request: seconds(2) };
/** The pause before a probe, and the wait for its answer. A page has a second more to show it. */
const toldWithinMs: Millis = seconds(4);
const shortestMs: Millis = seconds(2);
const longestMs: Millis = seconds(30);
/** A proxy without persistent connections makes every probe use a new one, which proves nothing. */
const newInARowMost = 3;
/**
 * One turn of the event loop, to read what arrived while this process was busy before judging.
 */
const turnMs: Millis = millis(1);

/**
 * Detects connections that are dead without having been closed, which a watch cannot, because it
 * only receives. A slow server is slow on a new connection as well, and then its connections are
 * kept. Refused or lost connections are detected by their own users.
 */
export class ConnectionProbe {
  readonly #options: ConnectionProbeOptions;
  #kind: ProbeKind = "Ping";
  #limitMs: Millis = shortestMs;
  /** How long the last connection was silent, until a new one has responded quickly. */
  #silentMs: Millis | undefined;
  #isTold = false;
  #newInARow = 0;
  #isFirst = true;

  constructor(options: ConnectionProbeOptions) {
    this.#options = options;
  }

  /** Resolves when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    this.#isFirst = true;
    while (!signal.aborted) {
      // Immediately at first, so that its connection is as old as those that it represents.
      const outcome = await this.#probe(signal);
      // Probes a new connection at once.
      if (outcome === "Silent") continue;
      if (outcome !== "Failed") this.#kind = outcome;
      await clock.sleep(restMs[this.#kind], signal).catch(() => {});
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
    this.#isTold = false;
    this.#newInARow = connection === "New" ? this.#newInARow + 1 : 0;
    this.#limitTo(2 * tookMs);
    if (silentMs !== undefined) {
      // A response as slow as before does not show whether the open connections are alive: waits
      // for the next probe.
      if (tookMs >= silentMs / 2) return;
      this.#silentMs = undefined;
      this.#options.onDead({ found: "Silent", silentMs });
    } else if (connection === "New" && !isFirst && this.#newInARow <= newInARowMost) {
      this.#options.onDead({ found: "Lost", silentMs: shortestMs });
    }
  }

  async #tellAfter(ms: number, over: AbortSignal): Promise<void> {
    const silentMs = millis(ms);
    await this.#silence(silentMs, over);
    if (over.aborted || this.#isTold || this.#silentMs !== undefined) return;
    this.#isTold = true;
    this.#options.onSilent?.(silentMs);
  }

  async #answerWithin(
    limitMs: Millis,
    signal: AbortSignal,
  ): Promise<ProbeAnswer | "Failed" | "Silent"> {
    const asking = new AbortController();
    const over = new AbortController();
    const giveUp = () => asking.abort();
    void this.#tellAfter(Math.min(limitMs, toldWithinMs - restMs[this.#kind]), over.signal);
    signal.addEventListener("abort", giveUp);
    const answer = this.#options.ask(asking.signal).catch(() => "Failed" as const);
    try {
      const outcome = await Promise.race([answer, this.#silence(limitMs, over.signal)]);
      // Only then, because the next probe uses a connection that has responded.
      if (outcome === "Silent") giveUp();
      return outcome;
    } finally {
      signal.removeEventListener("abort", giveUp);
      over.abort();
    }
  }

  /** Adapts the timeout: a slow server gets more time. */
  #limitTo(ms: number): void {
    this.#limitMs = millis(Math.min(longestMs, Math.max(shortestMs, ms)));
  }

  async #silence(limitMs: Millis, over: AbortSignal): Promise<"Silent"> {
    await this.#options.clock.sleep(limitMs, over).catch(() => {});
    await this.#options.clock.sleep(turnMs, over).catch(() => {});
    return "Silent";
  }
}

/** A session that is being opened in place of another. */
interface Renewal {
  readonly stop: AbortController;
  readonly session: Promise<ClientHttp2Session | undefined>;
}

/**
 * A connection that sends only HTTP/2 PING frames, which the server answers without a request to
 * authorize, audit or count.
 *
 * To a server this is an idle connection, and an API server closes those after 90 s, by a GOAWAY
 * without an error. That shows that the connection was alive until then, so a new one is opened at
 * once and takes its place. Only a watch that dies between the two has to be detected by TCP
 * keep-alive or by its own silence.
 */
export class PingSession {
  readonly #server: URL;
  #session: ClientHttp2Session | undefined;
  /** Whether the session has been pinged, so that it is worth replacing. */
  #isInUse = false;
  #renewal: Renewal | undefined;
  /** False once the server, or a proxy before it, has declined HTTP/2. */
  #isSpoken = true;

  constructor(server: URL) {
    this.#server = server;
    this.#isSpoken = server.protocol === "https:";
  }

  /**
   * Pings on the connection of the previous ping, or one that took its place, or a new one;
   * undefined if the server does not speak HTTP/2. Rejects if it cannot be reached.
   */
  async ping(tls: SocketRoute["tls"], signal: AbortSignal): Promise<"Kept" | "New" | undefined> {
    if (!this.#isSpoken) return undefined;
    const kept = usable(this.#session) ?? (await this.#renewed(signal));
    const session = kept ?? (await this.#open(tls, signal));
    this.#session = session;
    if (session === undefined) return undefined;
    await pinged(session, signal);
    this.#isInUse = true;
    return kept === undefined ? "New" : "Kept";
  }

  close(): void {
    this.#session?.destroy();
    this.#renewal?.stop.abort();
    void this.#renewal?.session.then((session) => session?.destroy());
  }

  #renew(tls: SocketRoute["tls"]): void {
    const stop = new AbortController();
    this.#renewal = { stop, session: this.#open(tls, stop.signal).catch(() => undefined) };
  }

  async #renewed(signal: AbortSignal): Promise<ClientHttp2Session | undefined> {
    const renewal = this.#renewal;
    if (renewal === undefined) return undefined;
    this.#renewal = undefined;
    signal.addEventListener("abort", () => renewal.stop.abort(), { once: true });
    const session = await renewal.session;
    // This ping has been given up meanwhile: the next one opens its own connection.
    signal.throwIfAborted();
    return usable(session);
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
    // The failed ping reports the error, and the next ping uses a new session.
    session.on("error", () => {});
    this.#isInUse = false;
    session.once("goaway", (code) => {
      if (code !== constants.NGHTTP2_NO_ERROR || this.#session !== session) return;
      if (this.#isInUse) this.#renew(tls);
    });
    return session;
  }
}

/** Undefined if it was dropped or the server is closing it. */
function usable(session: ClientHttp2Session | undefined): ClientHttp2Session | undefined {
  return session?.destroyed || session?.closed ? undefined : session;
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
    // As `https.request` does; TLS allows no address as a server name.
    const servername = isIP(host) === 0 ? host : "";
    const socket = connectTls({ host, port, ALPNProtocols, servername, ...tls });
    const abort = () => socket.destroy(new Error("The probe was cancelled"));
    signal.addEventListener("abort", abort, { once: true });
    socket.once("error", reject);
    socket.once("close", () => reject(new Error("The connection was closed")));
    socket.once("secureConnect", () => {
      signal.removeEventListener("abort", abort);
      resolve(socket);
    });
  });
}

/** Sends a ping. An abort destroys the session, so that the next ping uses a new one. */
function pinged(session: ClientHttp2Session, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      session.destroy();
      reject(new Error("The ping was cancelled"));
    };
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    const answered = (error: Error | null) => {
      signal.removeEventListener("abort", abort);
      if (error === null) resolve();
      else reject(error);
    };
    if (session.destroyed || !session.ping(answered))
      answered(new Error("The ping cannot be sent"));
  });
}
