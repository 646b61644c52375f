import { describe, expect, it } from "vitest";
import {
  asJson,
  asPattern,
  asSlackText,
  asText,
  asUrlPart,
  asXml,
  jsonTemplateProblem,
  renderTemplate,
  type TemplateFacts,
  templateFields,
  templateProblem,
} from "../../../src/core/action/template.ts";

const facts: TemplateFacts = {
  node: 'n1"\n<b>&',
  instanceId: "i-0abc",
  providerID: "aws:///eu-west-1a/i-0abc",
  cause: "SpotInterruption",
  deadline: "2026-11-24T12:02:00Z",
  outcome: "",
  policy: "spot",
  departure: "n1-12345678",
  summary: "line\nline",
};

describe("a template", () => {
  it("may use every field, sections and comments", () => {
    const all = Object.keys(templateFields).map((name) => `{{${name}}}`);
    const text = `${all.join(" ")} {{#outcome}}{{node}}{{/outcome}}{{^outcome}}still{{/outcome}}{{! why }}`;
    expect(templateProblem(text)).toBeUndefined();
  });

  it.each([
    ["{{nod}}", "the unknown field {{nod}}"],
    ["{{#out}}x{{/out}}", "the unknown field {{out}}"],
    ["{{#node}}{{it}}{{/node}}", "the unknown field {{it}}"],
    ["{{constructor}}", "the unknown field {{constructor}}"],
    ["{{node.length}}", "the unknown field {{node.length}}"],
    ["{{.}}", "the unknown field {{.}}"],
    ["{{{node}}}", "the unescaped tag {{{node}}}"],
    ["{{&node}}", "the unescaped tag {{{node}}}"],
    ["{{> other}}", "the partial {{>other}}"],
    ["{{node", "a template that does not parse: Unclosed tag at 6"],
    ["{{#node}}", 'a template that does not parse: Unclosed section "node" at 9'],
  ])("such as %s is refused for %s", (template, problem) => {
    expect(templateProblem(template)).toBe(problem);
  });

  it("does not expand tags inside values", () => {
    const odd = { ...facts, summary: "{{cause}}" };
    expect(renderTemplate("{{summary}}", odd, asText)).toBe("{{cause}}");
  });

  it("renders a section if its field has a value", () => {
    const template = "{{#outcome}}ended{{/outcome}}{{^outcome}}leaves{{/outcome}}";
    expect(renderTemplate(template, facts, asText)).toBe("leaves");
    expect(renderTemplate(template, { ...facts, outcome: "Planned" }, asText)).toBe("ended");
  });

  it.each([
    ["text", asText, 'n1"\n<b>&'],
    ["JSON", asJson, 'n1\\"\\n<b>&'],
    ["a URL", asUrlPart, "n1%22%0A%3Cb%3E%26"],
    ["Slack", asSlackText, 'n1"\n&lt;b&gt;&amp;'],
    ["XML", asXml, "n1&quot;\n&lt;b&gt;&amp;"],
  ] as const)("is escaped for %s", (_, as, rendered) => {
    expect(renderTemplate("{{node}}", facts, as)).toBe(rendered);
  });

  it("quotes a value for a regular expression", () => {
    expect(new RegExp(`^${asPattern("ip-10.0(1)[2]$")}$`).test("ip-10.0(1)[2]$")).toBe(true);
    expect(new RegExp(`^${asPattern("a.b")}$`).test("axb")).toBe(false);
  });
});

describe("a JSON template", () => {
  it.each([
    ['{"node": "{{node}}"}', undefined],
    ['{"node": "{{node}}"{{#outcome}}, "ended": true{{/outcome}}}', undefined],
    ['{"node": {{node}}}', /^a template that does not render to JSON: /],
    ['{"a": 1{{^outcome}},{{/outcome}}}', /^a template that does not render to JSON: /],
  ])("such as %s is checked by rendering it", (template, problem) => {
    if (problem === undefined) expect(jsonTemplateProblem(template)).toBeUndefined();
    else expect(jsonTemplateProblem(template)).toMatch(problem);
  });
});
