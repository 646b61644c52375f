import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const docs = join(import.meta.dirname, "../../docs");

/** Outcomes by name, apart from those that are also causes, reasons or phases. */
const names = /\b(RolledBack|Forced|Expired)\b|\boutcomes?\b|結果/;

const pages = globSync("**/*.md", { cwd: docs }).filter(
  // Records of decisions, rules of the audit, flags, and the page that defines them.
  (path) => !/^(adr|audit|plans)\/|^(glossary|reference\/options)\.md$/.test(path),
);

/** Neither code nor templates, in which `outcome` is a field. */
function proseOf(path: string): string {
  const text = readFileSync(join(docs, path), "utf8");
  return text.replaceAll(/\{\{[^}]*\}\}/g, "").replaceAll(/\bone-outcome\b/g, "");
}

it.each(pages.filter((path) => names.test(proseOf(path))))(
  "docs/%s leads from its outcomes to where they are defined",
  (path) => {
    expect(proseOf(path)).toContain("glossary.md#outcomes");
  },
);
