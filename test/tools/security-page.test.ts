import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../tools/source-tree.ts";

const page = readFileSync(join(root, "docs/security.md"), "utf8");
const [, section = ""] = /\n## Who may make a node leave\n([\s\S]*?)\n## /.exec(page) ?? [];
const [head = [], , ...rows] = section
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .map((line) => line.slice(2, -2).split(" | "));

it("each right that amounts to a drain is there with its worst, its check and its tests", () => {
  expect(head).toEqual(["who", "may", "at worst", "which check limits it", "shown by"]);
  expect(rows.length).toBeGreaterThan(15);
  for (const row of rows) {
    expect({ row, cells: row.length }).toEqual({ row, cells: head.length });
    expect(row).not.toContain("");
    const tests = [...(row.at(-1) ?? "").matchAll(/`([^`]+)`/g)].map(([, path = ""]) => path);
    expect({ row, tests }).not.toEqual({ row, tests: [] });
    expect(tests.filter((path) => !existsSync(join(root, path)))).toEqual([]);
    expect(tests.filter((path) => !/^test\/.*\.test\.ts$/.test(path))).toEqual([]);
  }
});
