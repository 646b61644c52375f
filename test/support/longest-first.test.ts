import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { longest } from "./longest-first.ts";
import { ownProcess } from "./own-process.ts";

const root = join(import.meta.dirname, "../..");

test("the files that start first exist, and share a process with others", () => {
  expect(longest.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  expect(longest.filter((file) => ownProcess.includes(file))).toEqual([]);
});
