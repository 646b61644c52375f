import { existsSync, globSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { atEachLanding, onChange, paired } from "./e2e-list.ts";

const root = join(import.meta.dirname, "../..");
const missing = (paths: readonly string[]) => paths.filter((path) => !existsSync(join(root, path)));

test("each end-to-end test is in one of the two lists", () => {
  const files = globSync("**/*.e2e.test.ts", { cwd: import.meta.dirname });
  const listed = [...Object.keys(atEachLanding), ...Object.keys(onChange)];
  const names = files.map((file) => basename(file, ".e2e.test.ts"));
  expect(listed.toSorted()).toEqual(names.toSorted());
});

test("each file that runs beside another is in one of them too", () => {
  const listed = [...Object.keys(atEachLanding), ...Object.keys(onChange)];
  expect(paired.filter((name) => !listed.includes(name))).toEqual([]);
});

test.each(Object.entries(onChange))("what %s covers exists", (_, { covers }) => {
  expect(covers).not.toEqual([]);
  expect(missing(covers)).toEqual([]);
});

test.each(Object.entries(onChange))(
  "what shows the same as %s meanwhile runs at each landing",
  (_, { meanwhile }) => {
    expect(missing(meanwhile)).toEqual([]);
    const late = meanwhile
      .map((path) => basename(path, ".e2e.test.ts"))
      .filter((name) => name in onChange);
    expect(late).toEqual([]);
  },
);
