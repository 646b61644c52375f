import mustache from "mustache";

/** What a template may name, and what it stands for. */
export const templateFields = {
  node: "the Node's name",
  instanceId: "the machine as its cloud names it",
  providerID: "the Node's `spec.providerID`",
  cause: "why it leaves",
  deadline: "after this instant the machine may be gone; empty where nobody has named one",
  outcome: "how the departure ended; empty until then",
  policy: "the policy",
  departure: "the Departure's name: the same in every log line and message about it",
  summary: "the ordered steps with their seconds",
} as const satisfies Readonly<Record<string, string>>;

export type TemplateField = keyof typeof templateFields;

/** What is known of one departure; a field without a value is the empty text. */
export type TemplateFacts = Readonly<Record<TemplateField, string>>;

/** How a sink wants the values that are put into a text of its own language. */
export type Escape = (value: string) => string;

export const asText: Escape = (value) => value;

/** Inside the quotes of a JSON string. */
export const asJson: Escape = (value) => JSON.stringify(value).slice(1, -1);

export const asUrlPart: Escape = (value) => encodeURIComponent(value);

/** What Slack reads as control characters: https://api.slack.com/reference/surfaces/formatting. */
export const asSlackText: Escape = (value) =>
  value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** What a card of Teams reads as Markdown: bold, italic and links. */
export const asTeamsText: Escape = (value) => value.replace(/[\\*_[\]]/g, "\\$&");

/** What text of XML and HTML may not hold as it is, or at all: XML 1.0, section 2.2. */
export const asXml: Escape = (value) =>
  asSlackText(value)
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");

/** A value in a regular expression of RE2, taken as it stands. */
export const asPattern: Escape = (value) => value.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&");

/**
 * What is wrong with a mustache template; undefined where nothing is. Partials and unescaped tags
 * are refused: there is nothing to include, and each sink escapes in its own way.
 */
export function templateProblem(template: string): string | undefined {
  try {
    // Parsed afresh: what the library keeps of every template it has seen grows for ever.
    return firstProblem(new mustache.Writer().parse(template) as readonly Token[]);
  } catch (error) {
    return `a template that does not parse: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** What is wrong with a template of JSON, whose values are put in with `asJson`. */
export function jsonTemplateProblem(template: string): string | undefined {
  if (templateProblem(template) !== undefined) return undefined;
  // A section may stand or not: with every field and with none.
  for (const value of ["x", ""]) {
    const facts = Object.fromEntries(Object.keys(templateFields).map((name) => [name, value]));
    try {
      JSON.parse(renderTemplate(template, facts as TemplateFacts, asJson));
    } catch (error) {
      return `a template that gives no JSON: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  return undefined;
}

/**
 * The text with the facts in it. The template has passed `templateProblem`. Half a sign, as of a
 * foreign sentence that was cut, fits into no address and into no request of AWS' clients.
 */
export function renderTemplate(template: string, facts: TemplateFacts, as: Escape): string {
  const context = new mustache.Context({ ...facts });
  const writer = new mustache.Writer();
  const asWhole = (value: unknown) => as(String(value).toWellFormed());
  return writer.render(template, context, undefined, { escape: asWhole }).toWellFormed();
}

/** Type, value, begin, end, and for sections the tokens inside: as the library parses. */
type Token = readonly [
  type: string,
  value: string,
  begin: number,
  end: number,
  inner?: readonly Token[],
];

function firstProblem(tokens: readonly Token[]): string | undefined {
  for (const [type, value, , , inner = []] of tokens) {
    const problem = problemOf(type, value) ?? firstProblem(inner);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function problemOf(type: string, value: string): string | undefined {
  switch (type) {
    case "name":
    case "#":
    case "^":
      return Object.hasOwn(templateFields, value) ? undefined : `the unknown field {{${value}}}`;
    case "&":
      return `the unescaped tag {{{${value}}}}`;
    case ">":
      return `the partial {{>${value}}}`;
    default:
      return undefined;
  }
}

/** How a refusal names what belongs into a template. */
export const templateWanted = `a mustache template of ${Object.keys(templateFields)
  .map((name) => `{{${name}}}`)
  .join(", ")}`;
