import { type Fields, isFields, trimmedTextOf } from "../../core/json/json-field.ts";
import type { Millis } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import type { ComputeAnswer, ComputeCall } from "./compute-client.ts";
import type { CallPurpose } from "./compute-fault.ts";

export interface ComputeList extends CallPurpose {
  /** The collection, such as `/projects/p/zones/z/instances`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** For each page; the client's own where absent. */
  readonly timeoutMs?: Millis;
}

/** `send` of a client, or `sendPatiently`. */
type Send = (call: ComputeCall, signal: AbortSignal) => Promise<ComputeAnswer>;

/** The most that a page holds, and the API's own limit. */
const pageSize = "500";
/**
 * 50,000 machines of one zone: more pages than that are no list but a server that goes in circles.
 */
const mostPages = 100;

/**
 * The items of a list, page by page; who has enough stops reading. What is no object is left out.
 * Throws `LastcallError` for a call that fails and for an answer that is no list.
 */
export async function* listItems(
  send: Send,
  list: ComputeList,
  signal: AbortSignal,
): AsyncGenerator<Fields> {
  let pageToken: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const { path, action, permission, timeoutMs } = list;
    const token = pageToken === undefined ? {} : { pageToken };
    const query = { maxResults: pageSize, ...list.query, ...token };
    const call = { method: "GET", path, query, action, permission, timeoutMs } as const;
    const answer = await send(call, signal);
    if (answer.kind === "NotFound") throw unreadable(list, "the answer 404");
    const { items = [], nextPageToken } = answer.body;
    if (!Array.isArray(items)) throw unreadable(list, "items that are no list");
    for (const item of items) {
      if (isFields(item)) yield item;
    }
    pageToken = trimmedTextOf(nextPageToken);
    if (pageToken === undefined) return;
  }
  throw unreadable(list, `more than ${mostPages} pages`);
}

function unreadable({ action }: ComputeList, found: string): LastcallError {
  return new LastcallError(
    "CLOUD_UNREACHABLE",
    `Cannot ${action}: found ${found}, expected a list`,
  );
}
