import type { Instant } from "../core/time/time.ts";

/** The part of a request that routes read. Only GET and HEAD requests reach a route. */
export interface HttpRequest {
  readonly accept: string;
}

export interface RouteAnswer {
  readonly status: number;
  readonly type?: string | undefined;
  readonly text: string;
}

/** A response without an end, such as server-sent events. */
export interface HttpStream {
  readonly type: string;
  /** Starts sending. Returns the function to call when the client has disconnected. */
  readonly open: (client: StreamClient) => () => void;
}

export interface StreamClient {
  /** Disconnects a client that does not read, instead of buffering for it. */
  send(text: string): void;
}

export type Route = (
  request: HttpRequest,
) => RouteAnswer | HttpStream | Promise<RouteAnswer | HttpStream>;

export type Routes = Readonly<Record<string, Route>>;

/** A TLS certificate and its key, both in PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Serves routes on an address such as `:9101` (every interface) or `127.0.0.1:0` (a free port).
 * Uses TLS if there is a key pair. Throws PORT_TAKEN and USAGE.
 */
export type Serve = (
  address: string,
  routes: Routes,
  pair?: KeyPair,
) => Promise<{ readonly port: number; close(): Promise<void> }>;

/** A client with more unread bytes than this is considered stuck. */
export const mostUnreadBytes = 16_384;

/** An authenticated request: path, cookie, Host and Origin have been checked. */
export interface PageRequest {
  readonly query: URLSearchParams;
  /** The last event that an interrupted stream received, as sent by the browser. */
  readonly lastEventId: string | undefined;
  /** The parsed JSON of a POST. */
  readonly body: unknown;
}

export interface PageAnswer {
  readonly status: number;
  /** Sent as JSON. */
  readonly json: unknown;
}

/** A response without an end: server-sent events. */
export interface PageStream {
  readonly type: string;
  /** Starts sending. Returns the function to call when the page has disconnected. */
  readonly open: (page: PageStreamClient) => () => void;
}

export interface PageStreamClient {
  /**
   * Sends a message in parts, pulled one by one as the page reads, so that a large picture is never
   * in memory as a whole. Disconnects a page that does not read.
   */
  send(parts: Iterable<string>): void;
}

export type PageRoute = (
  request: PageRequest,
) => PageAnswer | PageStream | Promise<PageAnswer | PageStream>;

export interface PageRoutes {
  readonly get: Readonly<Record<string, PageRoute>>;
  readonly post: Readonly<Record<string, PageRoute>>;
}

/** A static file of the page; it contains no secrets. */
export interface PageFile {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** A text in each language of the page. */
export type PageText = Readonly<Record<"en" | "ja", string>>;

export interface PageServerOptions {
  /** A loopback address, e.g. `127.0.0.1:8087`. If its port is taken, the next free one is used. */
  readonly address: string;
  readonly routes: PageRoutes;
  /** How to get a valid address, shown to visitors without one: `run lastcall board again`. */
  readonly entry: PageText;
  /** By path below the server's own random one, as for routes; `/` is the page. */
  readonly files: ReadonlyMap<string, PageFile>;
  /** Wall-clock time, by which a browser's access ends. */
  readonly now: () => Instant;
}

export interface PageServer {
  /** An address that lets one browser in; a new one once the previous address has been used. */
  url(): string;
  close(): Promise<void>;
}
