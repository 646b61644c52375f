import mustache from "mustache";
import type { ActionSpec, HttpCall, HttpRequestSpec } from "../policy/action.ts";

/** A field that a template may use, and its meaning. */
export const templateFields = {
  node: "the Node's name",
  instanceId: "the machine's id in its cloud",
  providerID: "the Node's `spec.providerID`",
  cause: "why the node leaves",
  deadline: "the time after which the machine may be gone; empty if there is none",
  outcome: "how the departure ended; empty until then",
  policy: "the policy",
  departure: "the Departure's name: the same in every log line and message about it",
  summary: "the ordered steps with their seconds",
} as const satisfies Readonly<Record<string, string>>;

export type TemplateField = keyof typeof templateFields;

/** The facts of one departure; a field without a value is an empty text. */
export type TemplateFacts = Readonly<Record<TemplateField, string>>;

/** How a sink escapes the values in its own format. */
type Escape = (value: string) => string;

export const asText: Escape = (value) => value;

/** Inside the quotes of a JSON string. */
export const asJson: Escape = (value) => JSON.stringify(value).slice(1, -1);

export const asUrlPart: Escape = (value) => encodeURIComponent(value);

/** The control characters of Slack: https://api.slack.com/reference/surfaces/formatting. */
export const asSlackText: Escape = (value) =>
  value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** The Markdown of a Teams card: bold, italic and links. */
const asTeamsText: Escape = (value) => value.replace(/[\\*_[\]]/g, "\\$&");

/**
 * Characters that text in XML and HTML must not contain unescaped, or at all: XML 1.0, section 2.2.
 */
export const asXml: Escape = (value) =>
  asSlackText(value)
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");

/** A value in a regular expression of RE2, matched literally. */
export const asPattern: Escape = (value) => value.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&");

/**
 * The problem with a Mustache template; undefined if there is none. Partials and unescaped tags are
 * rejected: there is nothing to include, and each sink has its own escaping.
 */
export function templateProblem(template: string): string | undefined {
  try {
    // Parsed each time: the library's cache of templates grows without limit.
    return firstProblem(new mustache.Writer().parse(template) as readonly TemplateToken[]);
  } catch (error) {
    return `a template that does not parse: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The problem with a template of JSON, whose values are inserted with `asJson`. */
export function jsonTemplateProblem(template: string): string | undefined {
  if (templateProblem(template) !== undefined) return undefined;
  // A section may be rendered or not, so the template is tried with every field set and with none.
  for (const value of ["x", ""]) {
    const facts = Object.fromEntries(Object.keys(templateFields).map((name) => [name, value]));
    try {
      JSON.parse(renderTemplate(template, facts as TemplateFacts, asJson));
    } catch (error) {
      return `a template that does not render to JSON: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  return undefined;
}

/**
 * Renders a template that has passed `templateProblem`. Half a surrogate pair, as in a foreign
 * sentence that was truncated, is removed: no address and no request of the AWS SDK may contain it.
 */
export function renderTemplate(template: string, facts: TemplateFacts, as: Escape): string {
  const context = new mustache.Context({ ...facts });
  const writer = new mustache.Writer();
  const asWhole = (value: unknown) => as(String(value).toWellFormed());
  return writer.render(template, context, undefined, { escape: asWhole }).toWellFormed();
}

/** Type, value, start, end, and for sections the tokens inside, as the library parses them. */
type TemplateToken = readonly [
  type: string,
  value: string,
  begin: number,
  end: number,
  inner?: readonly TemplateToken[],
];

function firstProblem(tokens: readonly TemplateToken[]): string | undefined {
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

/** What a template may contain, for the message that rejects one. */
export const templateWanted = `a mustache template of ${Object.keys(templateFields)
  .map((name) => `{{${name}}}`)
  .join(", ")}`;

/**
 * Truncates a message to what its receiver accepts: keeps its first lines and the last one, with
 * the number of omitted lines between them; of a single line, keeps the start. `fits` must hold for
 * every text that is shorter than one for which it holds.
 */
export function fitText(text: string, fits: (text: string) => boolean): string {
  if (fits(text)) return text;
  const lines = text.split("\n");
  const last = lines.at(-1) ?? "";
  const without = (left: number) => {
    const told = `… and ${left} more ${left === 1 ? "line" : "lines"}`;
    return [...lines.slice(0, lines.length - 1 - left), told, last].join("\n");
  };
  // At least the first line is kept: it names the subject.
  const left = leastOf(1, lines.length - 2, (count) => fits(without(count)));
  if (left !== undefined) return without(left);
  const signs = Array.from(text);
  const beginning = (missing: number) => `${signs.slice(0, -missing).join("").replace(half, "")}…`;
  const missing = leastOf(1, signs.length, (count) => fits(beginning(count)));
  return missing === undefined ? "" : beginning(missing);
}

/** An escape sequence whose end was cut off, as in Slack (`&amp;`) and Teams (`\_`). */
const half = /(?:&\w{0,5}|\\)$/;

/** The smallest of these numbers for which it holds; it then holds for all larger ones. */
function leastOf(from: number, to: number, holds: (count: number) => boolean): number | undefined {
  let [low, high] = [from, to + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low > to ? undefined : low;
}

export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).byteLength;
}

/** SNS accepts a subject of fewer than 100 printable ASCII characters. */
const longestSubject = 99;
/** The largest event that Lambda accepts according to every source; newer ones say 1 MB. */
const mostPayloadBytes = 256 * 1024;
/** Many servers reject a longer body or address; no limit is common to all of them. */
const mostBodyBytes = 256 * 1024;
const mostUrlBytes = 8000;

/** An action with the facts of one departure in its templates, each escaped for its sink. */
export function renderAction(how: ActionSpec, facts: TemplateFacts): ActionSpec {
  const text = (template: string, as: Escape = asText) => renderTemplate(template, facts, as);
  // Chats reject an empty message, such as that of a template whose only field has no value.
  const message = (template: string, as: Escape = asText) => {
    const found = text(template, as);
    return found.trim() === "" ? as(facts.summary) : found;
  };
  const within = (mostBytes: number) => (template: string, as: Escape) =>
    renderWithin(template, { facts, as, mostBytes });
  switch (how.kind) {
    case "sns":
      return { ...how, subject: subjectOf(text(how.subject)), message: message(how.message) };
    case "lambda":
      return {
        ...how,
        payload: how.payload ? within(mostPayloadBytes)(how.payload, asJson) : payloadOf(facts),
      };
    case "alertmanagerSilence": {
      const matchers = how.matchers.map((matcher) => renderMatcher(matcher, facts));
      return { ...how, matchers, comment: text(how.comment) };
    }
    case "datadogMute":
    case "mackerelStatus":
      return { ...how, host: text(how.host) };
    case "slack":
      return { ...how, message: message(how.message, asSlackText) };
    case "teams": {
      const title = text(how.title, asTeamsText);
      return { ...how, title, message: message(how.message, asTeamsText) };
    }
    case "telegram":
      return { ...how, message: message(how.message) };
    case "cloudEvents": {
      const { summary: _, ...data } = facts;
      return { ...how, message: text(how.message), data: withoutGaps(data) };
    }
    case "http":
      return renderHttp(how, { address: within(mostUrlBytes), body: within(mostBodyBytes) });
    default:
      return how;
  }
}

/** The payload of a Lambda function if the policy does not set one; empty fields are omitted. */
function payloadOf({ instanceId, node, cause, deadline }: TemplateFacts): string {
  return JSON.stringify(withoutGaps({ instanceId, node, cause, deadline }));
}

function withoutGaps(facts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== ""));
}

function subjectOf(text: string): string {
  const line = text.replaceAll(/[^\x21-\x7e]+/g, " ").trim();
  return line.slice(0, longestSubject).trim();
}

const matcherForm = /^(?<head>\w+ *(?<operator>=~|!~|!=|=) *)(?<value>.*)$/s;

/** `instance=~"{{node}}.*"`: a value in a pattern is matched literally. */
function renderMatcher(matcher: string, facts: TemplateFacts): string {
  const { head = "", operator = "", value = "" } = matcherForm.exec(matcher)?.groups ?? {};
  const inPattern: Escape = operator.endsWith("~") ? asPattern : asText;
  // Alertmanager unescapes these whether they are quoted or not.
  const as: Escape = (found) => inPattern(found).replace(/[\\"]/g, "\\$&");
  return head + renderTemplate(value, facts, as);
}

/**
 * Text for a program is not truncated, so that JSON stays JSON; only its summary is, which may be
 * long.
 */
function renderWithin(
  template: string,
  how: { readonly facts: TemplateFacts; readonly as: Escape; readonly mostBytes: number },
): string {
  const { facts, as, mostBytes } = how;
  const render = (summary: string) => renderTemplate(template, { ...facts, summary }, as);
  return render(fitText(facts.summary, (summary) => bytesOf(render(summary)) <= mostBytes));
}

type Rendered = (template: string, as: Escape) => string;

function renderHttp(
  how: HttpCall,
  text: { readonly address: Rendered; readonly body: Rendered },
): HttpCall {
  const as = escapeFor(how.contentType);
  const request = <Spec extends HttpRequestSpec>(spec: Spec): Spec => ({
    ...spec,
    url: text.address(spec.url, asUrlPart),
    ...(spec.body !== undefined && { body: text.body(spec.body, as) }),
  });
  return { ...request(how), ...(how.undo && { undo: request(how.undo) }) };
}

function escapeFor(contentType: string): Escape {
  if (isJsonType(contentType)) return asJson;
  if (/^application\/x-www-form-urlencoded\b/i.test(contentType)) return asUrlPart;
  return /[/+](xml|html)\b/i.test(contentType) ? asXml : asText;
}

/**
 * Whether a media type, in which case does not matter, is JSON, whose templates are checked and
 * escaped as such.
 */
export function isJsonType(contentType: string): boolean {
  return /[/+]json\b/i.test(contentType);
}
