/**
 * Holds translated pages in step with the English ones. What a translation must not change is
 * compared: headings, commands, names, figures, links and the size of tables. Whether the sentences
 * say the same is left to readers.
 */
import { dirname, join } from "node:path/posix";

/** The text of a page below the checkout. */
type TextOf = (path: string) => string | undefined;

export interface Translation {
  readonly page: string;
  /** The page that it translates as a whole; absent if it is a page of its own. */
  readonly of?: string;
  /** Where the code blocks of a page of its own come from. */
  readonly quotes?: readonly string[];
}

export const translations: readonly Translation[] = [
  { page: "README.ja.md", of: "README.md" },
  { page: "docs/ja/getting-started.md", of: "docs/getting-started.md" },
  {
    page: "docs/ja/migrate.md",
    quotes: ["docs/migrate.md", "docs/cloud/aws.md", "docs/audit/README.md"],
  },
];

export function translationProblems(
  { page, of, quotes = [] }: Translation,
  textOf: TextOf,
): readonly string[] {
  const text = textOf(page);
  if (text === undefined) return [`${page}: is missing`];
  const sources = of === undefined ? quotes : [of];
  const ofPage = of === undefined ? ownKinds : ownKinds.slice(0, 1);
  const strange = ofPage.flatMap(({ what, in: itemsIn }) => {
    const known = new Set(sources.flatMap((path) => itemsIn(textOf(path) ?? "", path)));
    return [...new Set(itemsIn(text, page))]
      .filter((item) => !known.has(item))
      .map((item) => `${page}: no page that it follows has ${what} ${item}`);
  });
  return of === undefined ? strange : [...strange, ...compared(page, of, textOf)];
}

function compared(page: string, of: string, textOf: TextOf): readonly string[] {
  const sections = sectionsOf(textOf(page) ?? "");
  const originals = sectionsOf(textOf(of) ?? "");
  const levels = (all: readonly Section[]) => all.map(({ level }) => "#".repeat(level)).join(" ");
  if (levels(sections) !== levels(originals)) {
    const found = `has the headings ${levels(sections)}, but ${of} has ${levels(originals)}`;
    return [`${page}: ${found}`];
  }
  return originals.flatMap((original, place) => {
    const section = sections[place] as Section;
    const missing = kinds.flatMap(({ what, in: itemsIn }) =>
      lackingIn(itemsIn(section.text, page), itemsIn(original.text, of)).map(
        (item) => `${what} ${item}`,
      ),
    );
    const rows = [section, original].map(({ text }) => text.match(/^\|/gm)?.length ?? 0);
    if (rows[0] !== rows[1]) missing.push(`${rows[1]} lines of tables, found ${rows[0]}`);
    const heading = original.heading || "its beginning";
    // What a heading says must stay in it: it is what a link and a table of contents show.
    const unnamed = kinds.flatMap(({ what, in: itemsIn }) =>
      lackingIn(itemsIn(section.heading, page), itemsIn(original.heading, of)).map(
        (item) => `${page}: the heading "${heading}" lacks ${what} ${item}`,
      ),
    );
    const told = missing.map((item) => `${page}: the section of "${heading}" lacks ${item}`);
    return [...unnamed, ...told];
  });
}

/**
 * What is wanted more often than it is found: of two equal figures, one can be out of date. More
 * may be found, since a translation can write a word such as "one" as a figure.
 */
function lackingIn(found: readonly string[], wanted: readonly string[]): readonly string[] {
  const timesIn = (items: readonly string[], item: string) =>
    items.filter((one) => one === item).length;
  return [...new Set(wanted)].filter((item) => timesIn(found, item) < timesIn(wanted, item));
}

const link = /\]\(([^)\s]+)\)/g;

interface Kind {
  readonly what: string;
  readonly in: (text: string, page: string) => readonly string[];
}

/** What each section of a translation has to have, too. */
const kinds: readonly Kind[] = [
  { what: "the code block", in: (text) => codeIn(text).map((code) => JSON.stringify(code)) },
  {
    what: "the name",
    in: (text) => [...prose(text).matchAll(/`([^`\n]+)`/g)].map(([, name]) => `\`${name}\``),
  },
  {
    what: "the figure",
    in: (text) =>
      prose(text)
        .replaceAll(link, "]")
        .match(/\d+(?:[.,]\d+)*/g) ?? [],
  },
  {
    what: "the link to",
    in: (text, page) => [...prose(text).matchAll(link)].map(([, to = ""]) => targetOf(to, page)),
  },
];

/** What a page of its own may have only if an English page has it; of a translation, the code. */
const ownKinds = kinds.filter(({ what }) => what !== "the link to");

/** The English page that a link leads to, from either language; without its anchor. */
function targetOf(to: string, page: string): string {
  if (/^[a-z]+:/.test(to)) return to;
  const [path = ""] = to.split("#");
  const file = path === "" ? page : join(dirname(page), path);
  const whole = translations.find((one) => one.page === file)?.of;
  return whole ?? file.replace(/^docs\/ja\//, "docs/");
}

interface Section {
  readonly level: number;
  readonly heading: string;
  readonly text: string;
}

function sectionsOf(markdown: string): readonly Section[] {
  const fence = /^\s*```/;
  const sections: { level: number; heading: string; text: string }[] = [];
  let inCode = false;
  for (const line of markdown.split("\n")) {
    if (fence.test(line)) inCode = !inCode;
    const [, marks = "", heading = ""] = (!inCode && /^(#{1,6})\s+(.*)$/.exec(line)) || [];
    if (marks !== "") sections.push({ level: marks.length, heading, text: "" });
    const last = sections.at(-1);
    if (last !== undefined) last.text += `${line}\n`;
  }
  return sections;
}

function prose(text: string): string {
  return text.replaceAll(/^\s*```[\s\S]*?^\s*```$/gm, "");
}

/** The code blocks without their comments, which are translated. */
function codeIn(text: string): readonly string[] {
  return [...text.matchAll(/^\s*```\w*\n([\s\S]*?)^\s*```$/gm)].map(([, code = ""]) =>
    code
      .split("\n")
      .map((line) => line.replace(/(^|\s+)#\s.*$/, "").trim())
      .filter((line) => line !== "")
      .join("\n"),
  );
}
