import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { longFiles } from "./long-run.ts";

const root = join(import.meta.dirname, "../..");

test("each test that has a long run is in the list, and no other", () => {
  const files = globSync("test/**/*.test.ts", { cwd: root });
  const long = files.filter((file) =>
    /^import \{ isLongRun \}/m.test(readFileSync(join(root, file), "utf8")),
  );
  expect(long.toSorted()).toEqual(longFiles.toSorted());
});
