import { describe, expect, it } from "vitest";
import { readLines } from "../../../src/kube/http/http-connection.ts";

async function* stream(...chunks: Buffer[]): AsyncGenerator<Buffer> {
  yield* chunks;
}

async function collect(lines: AsyncIterable<string>): Promise<string[]> {
  const out: string[] = [];
  for await (const line of lines) out.push(line);
  return out;
}

describe("the line reader", () => {
  const text = '{"name":"größe"}\n{"name":"夜行"}\n{"name":"🚂"}\n';
  const wanted = ['{"name":"größe"}', '{"name":"夜行"}', '{"name":"🚂"}'];
  const bytes = Buffer.from(text);

  it("yields the same lines wherever the bytes are split in two", async () => {
    for (let at = 0; at <= bytes.length; at += 1) {
      const lines = readLines(stream(bytes.subarray(0, at), bytes.subarray(at)));
      expect(await collect(lines), `cut at ${at}`).toEqual(wanted);
    }
  });

  it("yields the same lines if every byte arrives separately", async () => {
    const single = [...bytes].map((byte) => Buffer.from([byte]));
    expect(await collect(readLines(stream(...single)))).toEqual(wanted);
  });

  it("drops an incomplete line at the end and empty lines", async () => {
    expect(await collect(readLines(stream(Buffer.from("a\n\nb\nhal"))))).toEqual(["a", "b"]);
  });

  it("accepts a line of 8 MiB, and rejects one over the limit", async () => {
    const huge = Buffer.alloc(8 * 1024 * 1024, "x");
    const [line] = await collect(readLines(stream(huge, Buffer.from("\n"))));
    expect(line?.length).toBe(8 * 1024 * 1024);
    const endless = readLines(stream(Buffer.alloc(60, "x"), Buffer.alloc(60, "x")), 100);
    await expect(collect(endless)).rejects.toMatchObject({ code: "API_ANSWER_INVALID" });
  });

  it("reads the next chunk only when the lines of the last one were consumed", async () => {
    let given = 0;
    async function* counted(): AsyncGenerator<Buffer> {
      for (; given < 3; ) {
        given += 1;
        yield Buffer.from("a\nb\n");
      }
    }
    const lines = readLines(counted());
    await lines.next();
    await lines.next();
    expect(given).toBe(1);
    await lines.next();
    expect(given).toBe(2);
  });
});
