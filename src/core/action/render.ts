import type { ActionSpec, HttpCall, HttpRequestSpec } from "../policy/action.ts";
import { bytesOf, fitText } from "./fit-text.ts";
import {
  asJson,
  asPattern,
  asSlackText,
  asTeamsText,
  asText,
  asUrlPart,
  asXml,
  type Escape,
  renderTemplate,
  type TemplateFacts,
} from "./template.ts";

/** SNS takes a subject under 100 characters, of printable ASCII. */
const longestSubject = 99;
/** Lambda takes so much of an event by any account; newer ones say 1 MB. */
const mostPayloadBytes = 256 * 1024;
/** Past this many a server refuses a body, or an address: there is no limit that all have. */
const mostBodyBytes = 256 * 1024;
const mostUrlBytes = 8000;

/**
 * An action with the facts of one departure in its templates, each escaped as its sink reads it.
 */
export function renderAction(how: ActionSpec, facts: TemplateFacts): ActionSpec {
  const text = (template: string, as: Escape = asText) => renderTemplate(template, facts, as);
  // A chat refuses an empty message, as of a template of a field that has no value yet.
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

/** What a Lambda function is told where the policy does not say it; empty fields are left out. */
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

/**
 * `instance=~"{{node}}.*"`: a value in a pattern is a text of its own, not a part of the pattern.
 */
function renderMatcher(matcher: string, facts: TemplateFacts): string {
  const { head = "", operator = "", value = "" } = matcherForm.exec(matcher)?.groups ?? {};
  const inPattern: Escape = operator.endsWith("~") ? asPattern : asText;
  // Alertmanager reads these escapes in quotes and without.
  const as: Escape = (found) => inPattern(found).replace(/[\\"]/g, "\\$&");
  return head + renderTemplate(value, facts, as);
}

/** What a program reads is not cut, so that JSON stays JSON: its summary is, which may be long. */
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
  if (contentType.startsWith("application/x-www-form-urlencoded")) return asUrlPart;
  return /[/+](xml|html)\b/.test(contentType) ? asXml : asText;
}

/** Whether a media type is one of JSON, whose templates are checked and escaped as such. */
export function isJsonType(contentType: string): boolean {
  return /[/+]json\b/.test(contentType);
}
