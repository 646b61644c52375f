import { LastcallError } from "../../errors.ts";

const newline = 0x0a;

/** Far more than the JSON of the largest object, since etcd's limit is 1.5 MiB by default. */
const defaultMaxBytes = 64 * 1024 * 1024;

/**
 * Reads the lines of a byte stream. A chunk may end anywhere, even within a character. The next
 * chunk is read only when every line of the last one was consumed, which applies backpressure. An
 * incomplete last line is dropped. Throws `API_ANSWER_INVALID` for a line over `maxBytes`.
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number = defaultMaxBytes,
): AsyncGenerator<string, void, void> {
  let parts: Buffer[] = [];
  let heldBytes = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      parts.push(chunk.subarray(from, at));
      from = at + 1;
      const line = Buffer.concat(parts).toString("utf8");
      parts = [];
      heldBytes = 0;
      if (line.trim() !== "") yield line;
    }
    if (from < chunk.length) parts.push(chunk.subarray(from));
    heldBytes += chunk.length - from;
    if (heldBytes > maxBytes) throw tooLong(heldBytes, maxBytes);
  }
}

function tooLong(heldBytes: number, maxBytes: number): LastcallError {
  return new LastcallError(
    "API_ANSWER_INVALID",
    `Cannot read a line of the watch: ${heldBytes} bytes without an end, expected at most ${maxBytes}`,
  );
}
