import { expect, it } from "vitest";
import { keysOf } from "../../src/cli/command-line/terminal.ts";

it.each<[string, readonly string[]]>([
  ["q", ["q"]],
  ["sq", ["s", "q"]],
  ["\u001b[B\u001b[B", ["\u001b[B", "\u001b[B"]],
  ["\u001bOAs", ["\u001bOA", "s"]],
  ["\u001b[6~\u001b[1;5C", ["\u001b[6~", "\u001b[1;5C"]],
  ["\u0003", ["\u0003"]],
  ["", []],
])("terminal input %j is split into the keys %j", (text, keys) => {
  expect(keysOf(text)).toEqual(keys);
});
