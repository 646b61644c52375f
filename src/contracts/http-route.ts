/** The part of a request that routes read. Only GET requests reach a route. */
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
