import { LastcallError } from "../../errors.ts";
import { type Fields, fieldsOf, wordOf } from "../metadata/payload-field.ts";
import type { ComputeClient } from "./compute-client.ts";
import type { CallPurpose } from "./compute-fault.ts";

export interface ComputeList extends CallPurpose {
  /** The collection, such as `/projects/p/zones/z/instances`. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
}

/** The most that a page holds, and the API's own limit. */
const pageSize = "500";
/** 50,000 machines of one zone: more pages than that are no list but a server that goes in circles. */
const mostPages = 100;

/**
 * The items of a list, page by page; who has enough stops reading. What is no object is left out.
 * Throws `LastcallError` for a call that fails and for an answer that is no list.
 */
export async function* listItems(
  client: ComputeClient,
  list: ComputeList,
  signal: AbortSignal,
): AsyncGenerator<Fields> {
  let pageToken: string | undefined;
  for (let page = 0; page < mostPages; page++) {
    const { path, action, permission } = list;
    const token = pageToken === undefined ? {} : { pageToken };
    const query = { maxResults: pageSize, ...list.query, ...token };
    const call = { method: "GET", path, query, action, permission } as const;
    const answer = await client.sendPatiently(call, signal);
    if (answer.kind === "NotFound") throw unreadable(list, "the answer 404");
    const { items = [], nextPageToken } = answer.body;
    if (!Array.isArray(items)) throw unreadable(list, "items that are no list");
    for (const item of items) {
      const fields = fieldsOf(item);
      if (fields !== undefined) yield fields;
    }
    pageToken = wordOf(nextPageToken);
    if (pageToken === undefined) return;
  }
  throw unreadable(list, `more than ${mostPages} pages`);
}

function unreadable({ action }: ComputeList, found: string): LastcallError {
  return new LastcallError("CLOUD_UNREACHABLE", `Cannot ${action}: found ${found}, wanted a list`);
}
