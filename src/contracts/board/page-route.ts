import type { HttpStream } from "../http-route.ts";

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

export type PageRoute = (
  request: PageRequest,
) => PageAnswer | HttpStream | Promise<PageAnswer | HttpStream>;

export interface PageRoutes {
  readonly get: Readonly<Record<string, PageRoute>>;
  readonly post: Readonly<Record<string, PageRoute>>;
}

/** A file of the page; nothing in it is secret. */
export interface PageFile {
  readonly type: string;
  readonly bytes: Uint8Array;
}

export interface PageServerOptions {
  /** Of loopback, such as `127.0.0.1:8087`; where the port is taken one of the next is. */
  readonly address: string;
  readonly routes: PageRoutes;
  /** How to come by an address, told to whoever has none: `run lastcall board again`. */
  readonly entry: string;
  /** By path; `/` is the page itself. */
  readonly files: ReadonlyMap<string, PageFile>;
}

export interface PageServer {
  /** Lets one browser in; another address each time that the one before has been used. */
  url(): string;
  close(): Promise<void>;
}
