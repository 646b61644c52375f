import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ruleList } from "../../src/audit/rule-list.ts";
import { generateAuditDocs } from "../../tools/docs/audit-docs.ts";

it("the pages in docs/audit are up to date with the rules", () => {
  for (const [path, text] of generateAuditDocs()) expect(readFileSync(path, "utf8")).toBe(text);
});

it("there is exactly one page per rule", () => {
  const pages = readdirSync("docs/audit").filter(
    (name) => !["README.md", "wild.md"].includes(name),
  );

  expect(pages.sort()).toEqual(ruleList.map((rule) => `${rule.id}.md`).sort());
});
