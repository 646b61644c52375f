/** What is read of a request; only GET is answered at all. */
export interface HttpRequest {
  readonly accept: string;
}

export interface RouteAnswer {
  readonly status: number;
  readonly type?: string | undefined;
  readonly text: string;
}

/** An answer that has no end of its own, such as server-sent events. */
export interface HttpStream {
  readonly type: string;
  /** Begins to send; gives what is to be called once the client has gone. */
  readonly open: (client: StreamClient) => () => void;
}

export interface StreamClient {
  /** A client that does not read is cut off instead: what it has not read is kept for nobody. */
  send(text: string): void;
}

export type Route = (
  request: HttpRequest,
) => RouteAnswer | HttpStream | Promise<RouteAnswer | HttpStream>;

export type Routes = Readonly<Record<string, Route>>;

/** Both in PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/**
 * Serves at `:9101` (every interface) or `127.0.0.1:0` (a free port), by TLS where there is a key
 * pair. Throws PORT_TAKEN and USAGE.
 */
export type Serve = (
  address: string,
  routes: Routes,
  pair?: KeyPair,
) => Promise<{ readonly port: number; close(): Promise<void> }>;

/** More than this unread is a client that has stopped reading. */
export const mostUnreadBytes = 16_384;
