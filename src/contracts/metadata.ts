import type { Millis } from "../core/time/time.ts";

/** The parts of the standard `fetch` in use, which are the same on Node and Bun. */
export type MetadataFetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
    readonly redirect: "manual";
    readonly body?: string;
  },
) => Promise<Response>;

/** A request to the metadata service of a machine. */
export interface MetadataRequest {
  readonly path: string;
  readonly method?: "GET" | "PUT" | "POST" | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** The limit from the request to the last byte. Default 2 s. */
  readonly timeoutMs?: Millis | undefined;
}

/** A request that only one cloud's service accepts. All of them listen on 169.254.169.254. */
export interface MetadataProbe {
  readonly request: MetadataRequest;
  /** Whether the answer can only come from this cloud's service. */
  readonly fits: (answer: {
    readonly status: number;
    readonly flavor: string | null;
    readonly text: string;
  }) => boolean;
}
