import { describe, expect, it } from "vitest";
import { translationProblems } from "../../tools/translations.ts";

const english = `# Title

Nodes leave after 24 hours, see [planning](docs/planning.md#the-plan) and \`lastcall plan\`.

\`\`\`bash
lastcall plan -f policy.yaml   # who would leave
\`\`\`

## Next

| a | b |
|---|---|
| 1 | 2 |
`;
const japanese = `# 題名

ノードは 24 時間で出発します。[計画](docs/planning.md) と \`lastcall plan\` を参照。

\`\`\`bash
lastcall plan -f policy.yaml   # どのノードが出発するか
\`\`\`

## 次

| い | ろ |
|---|---|
| 1 | 2 |
`;

function problems(text: string, translated = english): readonly string[] {
  const pages: Readonly<Record<string, string>> = { "README.md": translated, "README.ja.md": text };
  return translationProblems({ page: "README.ja.md", of: "README.md" }, (path) => pages[path]);
}

const firstHours = `# The first 24 hours

After 24 hours nodes leave, at 30 minutes' notice, or at 30 that \`plan\` and \`plan\` say.
`;
const firstHoursInJapanese = `# 最初の 24 時間

24 時間で 30 分前に、または 30 と \`plan\` と \`plan\` が示す 1 つの時に出発します。
`;

describe("a translated page", () => {
  it("is in step if only its sentences, headings and comments differ", () => {
    expect(problems(japanese)).toEqual([]);
  });

  it.each<[string, string, string, string]>([
    ["a heading", "## 次", "### 次", "has the headings # ###, but README.md has # ##"],
    ["a command", "plan -f policy.yaml ", "plan -f other.yaml ", "-f other.yaml"],
    ["a missing command", "lastcall plan -f policy.yaml", "", "lacks the code block"],
    ["a name", "`lastcall plan`", "`lastcall show`", "lacks the name `lastcall plan`"],
    ["a figure", "24 時間", "23 時間", 'the section of "Title" lacks the figure 24'],
    ["a link", "(docs/planning.md)", "(docs/drain.md)", "lacks the link to docs/planning.md"],
    ["a row", "| 1 | 2 |\n", "", 'the section of "Next" lacks 3 lines of tables, found 2'],
  ])("is out of step with another %s", (_, from, to, told) => {
    expect(problems(japanese.replace(from, to)).join("\n")).toContain(told);
  });

  it.each<[string, string, string, string]>([
    ["its heading", "最初の 24", "最初の 23", 'heading "The first 24 hours" lacks the figure 24'],
    ["a sentence", "24 時間で", "23 時間で", 'section of "The first 24 hours" lacks the figure 24'],
    ["one of two", "または 30", "または 31", "lacks the figure 30"],
    ["one of two names", "と `plan` が", "と `run` が", "lacks the name `plan`"],
  ])("is out of step with another figure in %s, if the old one is left elsewhere", (...row) => {
    const [, from, to, told] = row;
    expect(problems(firstHoursInJapanese, firstHours)).toEqual([]);
    const changed = firstHoursInJapanese.replace(from, to);
    expect(problems(changed, firstHours).join("\n")).toContain(told);
  });

  it("is missing if there is none", () => {
    const none = translationProblems({ page: "README.ja.md", of: "README.md" }, () => undefined);
    expect(none).toEqual(["README.ja.md: is missing"]);
  });
});

it("a page of its own takes its code from the pages that it names", () => {
  const textOf = (path: string) => (path === "a.md" ? english : japanese);
  const page = { page: "docs/ja/own.md", quotes: ["a.md"] };
  expect(translationProblems(page, textOf)).toEqual([]);
  const other = (path: string) => textOf(path).replace("lastcall plan -f", "lastcall run -f");
  const changed = (path: string) => (path === "a.md" ? english : other(path));
  expect(translationProblems(page, changed)).toEqual([
    'docs/ja/own.md: no page that it follows has the code block "lastcall run -f policy.yaml"',
  ]);
});
