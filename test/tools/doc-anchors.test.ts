import { describe, expect, it } from "vitest";
import { anchorsOf, missingAnchors, missingHeadings } from "../../tools/doc-anchors.ts";

describe("the anchors of a page", () => {
  it("are derived from its headings as on GitHub", () => {
    const page = [
      "# What it costs",
      "## `--from DIR`, and *more*!",
      "## The [queue](q.md) of AWS's own",
      "## Überblick: 1 & 2",
      "## What it costs",
      "```",
      "# no heading",
      "```",
      '<a id="by-hand"></a>',
    ].join("\n");
    expect([...anchorsOf(page)]).toEqual([
      "what-it-costs",
      "--from-dir-and-more",
      "the-queue-of-awss-own",
      "überblick-1--2",
      "what-it-costs-1",
      "by-hand",
    ]);
  });
});

describe("links to an anchor", () => {
  const pages = new Map([["docs/other.md", "# There"]]);
  const missing = (text: string) =>
    missingAnchors({ path: "docs/page.md", text }, (path) => pages.get(path));

  it("are valid if the heading exists on the page or on another one", () => {
    expect(missing("# Here\n[a](#here), [b](other.md#there), [c](../docs/other.md#there)")).toEqual(
      [],
    );
  });

  it("are reported if there is no such heading", () => {
    expect(missing("# Here\n[a](#there) [b](other.md#here)")).toEqual([
      "docs/page.md: #there leads to no heading",
      "docs/page.md: other.md#here leads to no heading",
    ]);
  });

  it("are not checked for other sites, other files and missing pages", () => {
    expect(missing("[a](https://a.b/c#d) [b](../src/a.ts#L3) [c](gone.md#x)")).toEqual([]);
  });
});

describe("a heading that a message refers to", () => {
  const found = (text: string) =>
    missingHeadings({ path: "src/a.ts", text }, (path) =>
      path === "docs/cloud/x.md" ? "## The rights" : undefined,
    );

  it("is found by its anchor", () => {
    expect(found("grant it (docs/cloud/x.md#the-rights), see docs/cloud/x.md.")).toEqual([]);
  });

  it.each([
    ["docs/cloud/x.md#rights", "src/a.ts: docs/cloud/x.md#rights leads to no heading"],
    ["docs/cloud/y.md#rights", "src/a.ts: docs/cloud/y.md#rights leads to no heading"],
    ["docs/cloud/x.md, Rights", "src/a.ts: name the heading by its anchor: docs/cloud/x.md, R"],
  ])("is reported if missing: %s", (text, told) => {
    expect(found(`grant it (${text})`)).toEqual([told]);
  });
});
