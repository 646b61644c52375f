import { describe, expect, it } from "vitest";
import { missingFiles } from "../../tools/cited-files.ts";

const there = new Set(["src/core/decide.ts", "docs/drain.md", "docs/bench/of.md"]);

function missing(path: string, text: string): readonly string[] {
  const exists = (file: string): boolean => there.has(file);
  return missingFiles({ path, text }, { exists, isName: (name) => name === "decide.ts" });
}

describe("file names in text", () => {
  it("may be relative to the root, to src or to the page", () => {
    expect(
      missing(
        "docs/page.md",
        "`src/core/decide.ts`, `core/decide.ts`, docs/drain.md, bench/of.md.",
      ),
    ).toEqual([]);
  });

  it("are reported with their line if the file does not exist", () => {
    expect(missing("docs/page.md", "one\nsee `core/decided.ts`")).toEqual([
      "docs/page.md:2: there is no core/decided.ts",
    ]);
  });

  it("are checked in comments of code, and nowhere else in it", () => {
    const text = ' * see core/gone.ts\nimport { x } from "core/other.ts";\n// kube/gone.ts';
    expect(missing("src/a.ts", text)).toEqual([
      "src/a.ts:1: there is no core/gone.ts",
      "src/a.ts:3: there is no kube/gone.ts",
    ]);
  });

  it("may be without their folder", () => {
    expect(missing("src/a.ts", "// see decide.ts and `decided.ts`")).toEqual([
      "src/a.ts:1: there is no decided.ts",
    ]);
  });

  it("are not checked in patterns and longer paths", () => {
    expect(missing("docs/page.md", "`cloud/<x>/notice-source.ts`, `dist/core/x.ts`")).toEqual([]);
  });
});
