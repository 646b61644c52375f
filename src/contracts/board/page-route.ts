/** A request that has shown whose it is: the guard has looked at cookie, Host and Origin before. */
export interface PageRequest {
  readonly query: URLSearchParams;
  /** What a stream that was cut had last, by the browser's own word. */
  readonly lastEventId: string | undefined;
  /** The parsed JSON of a POST. */
  readonly body: unknown;
}

export interface PageAnswer {
  readonly status: number;
  /** Sent as JSON. */
  readonly json: unknown;
}

/** An answer that has no end of its own: server-sent events. */
export interface PageStream {
  readonly type: string;
  /** Begins to send; gives what is to be called once the page has gone. */
  readonly open: (page: PageStreamClient) => () => void;
}

export interface PageStreamClient {
  /**
   * A message in parts, which are taken one by one as the page reads, so that a large picture is
   * nowhere in one piece. A page that does not read is cut off.
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

/** A file of the page; nothing in it is secret. */
export interface PageFile {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** A text in each language of the page. */
export type PageText = Readonly<Record<"en" | "ja", string>>;

export interface PageServerOptions {
  /** Of loopback, such as `127.0.0.1:8087`; where the port is taken one of the next is. */
  readonly address: string;
  readonly routes: PageRoutes;
  /** How to come by an address, told to whoever has none: `run lastcall board again`. */
  readonly entry: PageText;
  /** By path; `/` is the page itself. */
  readonly files: ReadonlyMap<string, PageFile>;
}

export interface PageServer {
  /** Lets one browser in; another address each time that the one before has been used. */
  url(): string;
  close(): Promise<void>;
}
