import { expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-io.ts";
import { runCommandLine } from "../../src/cli/command-line.ts";

it.each([
  [["plan", "--frm", "x"], "lastcall: unknown option '--frm' (Did you mean --from?)\n"],
  [["plna"], "lastcall: unknown command 'plna' (Did you mean plan?)\n"],
  [["plan", "--zzzzzz"], "lastcall: unknown option '--zzzzzz'\n"],
])("%j is refused in one line", async (words, sentence) => {
  const [out, err]: [string[], string[]] = [[], []];
  const io = {
    ...{ out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) },
    ...{ env: {}, signal: new AbortController().signal },
  } as unknown as CommandIo;
  expect(await runCommandLine(words, io)).toBe(2);
  expect([out, err.join("")]).toEqual([[], sentence]);
});
