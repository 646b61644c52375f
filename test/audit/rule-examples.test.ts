import { describe, expect, it } from "vitest";
import { audit } from "../../src/audit/audit.ts";
import { parseManifests } from "../../src/audit/input/parse-manifests.ts";
import { parsePlatform } from "../../src/audit/platform.ts";
import type { Finding, RuleExample } from "../../src/audit/report.ts";
import { ruleList } from "../../src/audit/rule-list.ts";

describe.each(ruleList)("the rule $id", (rule) => {
  it("flags its bad example with the declared severity", () => {
    const found = findingsOf(rule.bad).filter((finding) => finding.rule === rule.id);

    expect(found).not.toEqual([]);
    expect(found[0]?.severity).toBe(rule.severity);
  });

  it("does not flag its good example", () => {
    expect(findingsOf(rule.good).filter((finding) => finding.rule === rule.id)).toEqual([]);
  });

  it("says the same of its examples if two files contain them", () => {
    const about = (findings: readonly Finding[]) =>
      new Set(findings.map(({ rule: id, object, severity }) => [severity, id, object].join(" ")));
    for (const example of [rule.bad, rule.good]) {
      const twice = { ...example, yaml: `${example.yaml}---\n${example.yaml}` };

      expect(about(findingsOf(twice))).toEqual(about(findingsOf(example)));
    }
  });

  it("explains why, what to do, and when not to use it, in whole sentences", () => {
    for (const text of [rule.why, rule.fix, rule.whenNotToUse])
      expect(text).toMatch(/^[A-Z].+\.$/s);
    expect(rule.title).toMatch(/^[a-z].*[^.]$/);
    expect(rule.id).toMatch(/^[a-z]+(-[a-z]+)+$/);
  });
});

it("no two rules have the same id", () => {
  expect(new Set(ruleList.map((rule) => rule.id)).size).toBe(ruleList.length);
});

function findingsOf(example: RuleExample): readonly Finding[] {
  const { documents, problems } = parseManifests({ file: "example.yaml", text: example.yaml });
  expect(problems).toEqual([]);
  const platforms = (example.platforms ?? ["gke"]).map((name) => {
    const request = parsePlatform(name);
    if (request.kind !== "Ready") throw new Error("an example names no file");
    return request.platform;
  });
  const sources = documents.map(({ value, line }) => ({ file: "example.yaml", line, json: value }));
  return audit({ sources, platforms }).findings;
}
