import { describe, expect, it } from "vitest";
import { testProblems } from "../../tools/named-tests.ts";

const files: Readonly<Record<string, string>> = {
  "test/a.test.ts": 'it("does this", () => {});\n  ])("does %s", (_) => {});',
};

function problems(text: string): string[] {
  return testProblems("docs/page.md", text, (path) => files[path]);
}

describe("a page that names tests", () => {
  it("is valid if each of them exists", () => {
    expect(problems('| 1 | a | b | `test/a.test.ts` "does this", "does %s" |')).toEqual([]);
    expect(problems("Words, and `test/a.test.ts` without a sentence.")).toEqual([]);
  });

  it("is reported for a test that has been renamed", () => {
    expect(problems('| 1 | a | b | `test/a.test.ts` "does this", "does that" |')).toEqual([
      'docs/page.md: test/a.test.ts has no test "does that"',
    ]);
  });

  it("is reported for only a part of a test's name", () => {
    expect(problems('See `test/a.test.ts` "does".')).toEqual([
      'docs/page.md: test/a.test.ts has no test "does"',
    ]);
  });

  it("is reported for a file that does not exist", () => {
    expect(problems('| 1 | a | b | `test/b.test.ts` "does this" |')).toEqual([
      "docs/page.md: there is no test/b.test.ts",
    ]);
  });

  it("is reported for a table row without a test", () => {
    expect(problems("| 7 | a | b | by reading |")).toEqual(["docs/page.md: row 7 names no test"]);
  });
});
