/** An authenticated request: cookie, Host and Origin have been checked. */
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
  /** By path; `/` is the page. */
  readonly files: ReadonlyMap<string, PageFile>;
}

export interface PageServer {
  /** An address that lets one browser in; a new one once the previous address has been used. */
  url(): string;
  close(): Promise<void>;
}
