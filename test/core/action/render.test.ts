import { describe, expect, it } from "vitest";
import { bytesOf, renderAction, type TemplateFacts } from "../../../src/core/action/template.ts";
import type { ActionSpec, HttpCall, LambdaCall } from "../../../src/core/policy/action.ts";
import { minutes } from "../../../src/core/time/time.ts";

const facts: TemplateFacts = {
  node: 'n"1.a',
  instanceId: "i-0abc",
  providerID: "aws:///eu-west-1a/i-0abc",
  cause: "SpotInterruption",
  deadline: "",
  outcome: "Preempted",
  policy: "spot",
  departure: "n1-12345678",
  summary: "12:00:00 noticed\n12:00:01 <cordoned>",
};

function matchersOf(...matchers: readonly string[]): readonly string[] {
  const how: ActionSpec = {
    kind: "alertmanagerSilence",
    ...{ url: "http://am:9093", matchers, durationMs: minutes(1), comment: "" },
  };
  return (renderAction(how, facts) as typeof how & { kind: "alertmanagerSilence" }).matchers;
}

describe("a rendered action", () => {
  it("escapes a value in a matcher, and quotes it literally in a regular expression", () => {
    expect(
      matchersOf(
        'instance="{{node}}"',
        'instance=~"{{node}}:[0-9]+"',
        "host!~{{instanceId}}",
        'a="b"',
      ),
    ).toEqual(['instance="n\\"1.a"', 'instance=~"n\\"1\\\\.a:[0-9]+"', "host!~i-0abc", 'a="b"']);
  });

  it("escapes a value in an unquoted matcher so that Alertmanager reads it back unchanged", () => {
    const odd = { ...facts, node: 'a\\.b"' };
    const how: ActionSpec = {
      kind: "alertmanagerSilence",
      ...{ url: "http://am:9093", durationMs: minutes(1), comment: "" },
      matchers: ["host={{node}}", "host=~{{node}}"],
    };
    // Alertmanager reads two backslashes as one, and a backslash and a quote as a quote.
    expect(renderAction(how, odd)).toMatchObject({
      matchers: ['host=a\\\\.b\\"', 'host=~a\\\\\\\\\\\\.b\\"'],
    });
  });

  it("shows any Markdown in a value as plain text in a Teams card", () => {
    const how: ActionSpec = { kind: "teams", title: "*{{node}}*", message: "_{{summary}}_" };
    const odd = { ...facts, node: "n_1", summary: "[x](https://a.example) *now* C:\\x" };
    expect(renderAction(how, odd)).toMatchObject({
      title: "*n\\_1*",
      message: "_\\[x\\](https://a.example) \\*now\\* C:\\\\x_",
    });
  });

  it.each<ActionSpec>([
    { kind: "slack", message: "{{deadline}}" },
    { kind: "teams", title: "", message: " {{#deadline}}by {{deadline}}{{/deadline}}\n" },
    {
      ...{ kind: "telegram", url: "https://t.example", chatId: "1", message: "" },
      secretRef: { name: "a", key: "b" },
    },
    { kind: "sns", topicArn: "arn", subject: "", message: "{{deadline}}" },
  ])("falls back to the summary if the message renders empty, which $kind rejects", (how) => {
    const { message } = renderAction(how, facts) as { readonly message: string };
    expect(message).toMatch(/^12:00:00 noticed\n12:00:01 .*cordoned/);
  });

  it("has a subject that SNS accepts: one line of ASCII under 100 characters", () => {
    const topicArn = "arn:aws:sns:eu-west-1:123456789012:drains";
    const subject = `{{summary}} – ${"x".repeat(200)}`;
    const how = renderAction({ kind: "sns", topicArn, subject, message: "{{outcome}}" }, facts);
    expect(how).toMatchObject({ message: "Preempted" });
    const { subject: sent } = how as { readonly subject: string };
    expect(sent).toMatch(/^12:00:00 noticed 12:00:01 <cordoned> x+$/);
    expect(sent).toHaveLength(99);
  });

  it("passes the known facts to a Lambda function if the policy sets no payload", () => {
    expect(renderAction({ kind: "lambda", functionName: "work" }, facts)).toEqual({
      kind: "lambda",
      functionName: "work",
      payload: '{"instanceId":"i-0abc","node":"n\\"1.a","cause":"SpotInterruption"}',
    });
  });

  describe("with the summary of a node that has hundreds of pods with the longest names", () => {
    const pods = Array.from({ length: 800 }, (_, place) => `\t"${`p${place}-`.padEnd(253, "é")}"`);
    const many = { ...facts, summary: ["n1 leaves", ...pods, "pods: 800 in all"].join("\n") };
    const shortened = /^n1 leaves\n[\s\S]*\n… and \d+ more lines\npods: 800 in all$/;

    it("has a payload within Lambda's limit that is still valid JSON", () => {
      const template = '{"node": "{{node}}", "text": "{{summary}}"}';
      const how = { kind: "lambda", functionName: "work", payload: template } as const;
      const { payload = "" } = renderAction(how, many) as LambdaCall;
      expect(bytesOf(payload)).toBeLessThanOrEqual(256 * 1024);
      expect(bytesOf(payload)).toBeGreaterThan(255 * 1024);
      expect(JSON.parse(payload)).toEqual({
        ...{ node: facts.node, text: expect.stringMatching(shortened) },
      });
    });

    it.each([
      ["application/json", '["{{summary}}", "{{summary}}"]'],
      ["application/xml", "<a>{{summary}}</a>"],
      ["application/x-www-form-urlencoded", "text={{summary}}"],
    ])("has a body of %s within the size limit, and a short URL", (contentType, body) => {
      const url = "https://x.example/?text={{summary}}";
      const undo = { url: "https://x.example/", method: "POST", body } as const;
      const how = {
        kind: "http",
        method: "POST",
        url,
        contentType,
        headers: [],
        body,
        undo,
      } as const;
      const sent = renderAction(how, many) as HttpCall;
      expect(bytesOf(sent.url)).toBeLessThanOrEqual(8000);
      expect(decodeURIComponent(sent.url)).toMatch(
        /text=n1 leaves\n[\s\S]* more lines\npods: 800 in all$/,
      );
      for (const text of [sent.body, sent.undo?.body]) {
        expect(bytesOf(text ?? "")).toBeLessThanOrEqual(256 * 1024);
        expect(bytesOf(text ?? "")).toBeGreaterThan(250 * 1024);
      }
      if (contentType !== "application/json") return;
      const whole = expect.stringMatching(shortened);
      expect(JSON.parse(sent.body ?? "")).toEqual([whole, whole]);
    });
  });

  it("escapes the body by its content type, and the URL by percent-encoding", () => {
    const http = (contentType: string): unknown =>
      renderAction(
        {
          kind: "http",
          ...{ url: "https://a.example/{{node}}?c={{cause}}", method: "POST" },
          ...{ contentType, headers: [], body: "{{summary}}{{node}}" },
        },
        facts,
      );
    const url = "https://a.example/n%221.a?c=SpotInterruption";
    expect(http("application/json")).toMatchObject({
      url,
      body: '12:00:00 noticed\\n12:00:01 <cordoned>n\\"1.a',
    });
    expect(http("application/vnd.api+json; charset=utf-8")).toMatchObject({
      body: '12:00:00 noticed\\n12:00:01 <cordoned>n\\"1.a',
    });
    expect(http("application/x-www-form-urlencoded")).toMatchObject({
      body: "12%3A00%3A00%20noticed%0A12%3A00%3A01%20%3Ccordoned%3En%221.a",
    });
    expect(http("text/html")).toMatchObject({
      body: "12:00:00 noticed\n12:00:01 &lt;cordoned&gt;n&quot;1.a",
    });
    expect(http("text/plain")).toMatchObject({
      body: '12:00:00 noticed\n12:00:01 <cordoned>n"1.a',
    });
  });

  it.each([
    ["application/JSON", "application/json"],
    ["application/vnd.api+Json; charset=UTF-8", "application/json"],
    ["application/X-WWW-Form-Urlencoded", "application/x-www-form-urlencoded"],
    ["text/HTML", "text/html"],
    ["application/atom+XML", "application/xml"],
  ])("escapes the body for %s as for %s, and sends the type as it is written", (written, usual) => {
    const http = (contentType: string) =>
      renderAction(
        {
          ...{ kind: "http", url: "https://a.example", method: "POST" },
          ...{ contentType, headers: [], body: "{{summary}}{{node}}" },
        },
        facts,
      ) as HttpCall;
    expect(http(written)).toEqual({ ...http(usual), contentType: written });
  });

  describe("with control bytes and an error message cut within a character in its facts", () => {
    const odd = { ...facts, summary: `mute Failed: \u0000\u001b[31m "\ud835`, node: "n\udc9b1" };
    const http = (contentType: string) =>
      renderAction(
        {
          kind: "http",
          ...{ url: "https://a.example/{{node}}?c={{summary}}", method: "POST" },
          ...{ contentType, headers: [], body: "<a>{{summary}}</a>" },
        },
        odd,
      ) as HttpCall;

    it("has a valid URL, and text that every encoding accepts", () => {
      const { url, body = "" } = http("text/plain");
      expect(decodeURIComponent(new URL(url).search)).toContain("mute Failed: ");
      expect([url, body].every((text) => text.isWellFormed())).toBe(true);
    });

    it("has a body of well-formed XML", () => {
      const [, text] = /^<a>(.*)<\/a>$/s.exec(http("application/xml").body ?? "") ?? [];
      // The grammar of XML 1.0, section 2.2.
      expect(text).toMatch(/^[\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]+$/u);
      expect(text).toContain("mute Failed: ");
    });

    it("has a message that the AWS SDK can send", () => {
      const topicArn = "arn:aws:sns:eu-west-1:123456789012:spot";
      const sns = { kind: "sns", topicArn, subject: "{{node}}", message: "{{summary}} {{node}}" };
      const { message, subject } = renderAction(sns as ActionSpec, odd) as typeof sns;
      expect(() => encodeURIComponent(message)).not.toThrow();
      expect(subject).toBe("n 1");
    });
  });

  it("returns an action without templates unchanged", () => {
    const how: ActionSpec = { kind: "detach", decrementDesiredCapacity: false };
    expect(renderAction(how, facts)).toBe(how);
  });
});
