import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { PastDeparture } from "../../src/board/stream.ts";
import { openHistory } from "../../src/cli/board/start-board.ts";
import { processIo } from "../../src/runtime/process-io.ts";

let folder: string;
let said: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lastcall-history-"));
  said = "";
});
afterEach(() => rm(folder, { recursive: true }));

const open = (name: string) =>
  openHistory(join(folder, name), {
    files: processIo().files,
    err: (text) => {
      said += text;
    },
  });

const past = (id: string) =>
  ({
    id,
    node: id,
    outcome: "Planned",
    policy: null,
    endedAt: 1_800_000_000_000,
    pods: null,
  }) as unknown as PastDeparture;

it("the history file keeps ended departures across restarts, each once", async () => {
  for (const ids of [
    ["a", "b"],
    ["b", "c"],
  ]) {
    const { ended, written } = await open("history");
    for (const id of ids) ended.add(past(id));
    await written();
  }
  const { ended } = await open("history");
  expect(ended.newest().map(({ id }) => id)).toEqual(["a", "b", "c"]);
  expect((await readFile(join(folder, "history"), "utf8")).trimEnd().split("\n")).toHaveLength(3);
});

it("the history file is read past a truncated line, which is reported", async () => {
  await writeFile(join(folder, "history"), '{"id":"cut');
  const { ended, written } = await open("history");
  ended.add(past("a"));
  await written();
  const again = await open("history");
  expect(again.ended.newest().map(({ id }) => id)).toEqual(["a"]);
  expect(said).toContain("1 line of ");
  expect(said).toContain("cannot be read as a departure and is skipped");
});

it.each([
  ["a kubeconfig", "apiVersion: v1\nkind: Config\n"],
  ["a kubeconfig in JSON", '{"apiVersion":"v1","kind":"Config"}\n'],
  ["a JSON list", "[]"],
])("the history is not appended to %s", async (_, text) => {
  await writeFile(join(folder, "history"), text);
  await expect(open("history")).rejects.toMatchObject({
    code: "INPUT_INVALID",
    message: expect.stringMatching(/^Cannot keep departures in .*history: it contains none/),
  });
  expect(await readFile(join(folder, "history"), "utf8")).toBe(text);
});

it("a history of 100,000 departures counts all of them and shows the newest 500", async () => {
  const lines = Array.from({ length: 100_000 }, (_, index) => {
    const endedAt = 1_800_000_000_000 + 1000 * index;
    return `${JSON.stringify({ ...past(`d${index}`), endedAt })}\n`;
  });
  await writeFile(join(folder, "history"), lines.join(""));
  const { ended } = await open("history");
  expect(ended.newest()).toHaveLength(500);
  expect(ended.newest()[0]?.id).toBe("d99999");
  const counts = ended.days().map(({ outcomes }) => outcomes.Planned ?? 0);
  expect(counts.reduce((sum, count) => sum + count)).toBe(100_000);
});

it("an unwritable history file is an error at startup, and only a message later", async () => {
  await expect(open("no/such/folder")).rejects.toMatchObject({ code: "OUTPUT_UNWRITABLE" });
  const { ended, written } = await open("history");
  await rm(folder, { recursive: true });
  ended.add(past("a"));
  await written();
  expect(said).toMatch(/^lastcall: Cannot write .*history/);
  folder = await mkdtemp(join(tmpdir(), "lastcall-history-"));
});
