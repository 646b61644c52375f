import { describe, expect, it } from "vitest";
import { parsePolicyObject } from "../../src/config/policy/parse-policy-object.ts";
import { sentenceOf } from "../../src/config/problem.ts";

const world = { cronProblem: () => undefined };
const inCluster = { ...world, unknownFields: "Warn" } as const;
const inFile = { ...world, unknownFields: "Refuse" } as const;

function object(spec: unknown) {
  const metadata = { name: "spot", uid: "u-1", generation: 7, resourceVersion: "12", labels: {} };
  return { apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata, spec };
}

describe("a policy object", () => {
  it("keeps its uid and generation, and gets the same defaults as a file", () => {
    const parsed = parsePolicyObject(object({}), inCluster);
    expect(parsed).toMatchObject({
      policy: {
        name: "spot",
        uid: "u-1",
        generation: 7,
        spacing: { mode: "Late", minMs: 900_000 },
      },
      warnings: [],
    });
  });

  it("from the cluster with a field of a newer CRD is read without it, with a warning", () => {
    const parsed = parsePolicyObject(object({ weight: 3, drain: { speed: "fast" } }), inCluster);
    expect(parsed).toMatchObject({ policy: { weight: 3 } });
    expect("warnings" in parsed && parsed.warnings.map(({ text }) => text)).toEqual([
      "spec.drain.speed is ignored: this version does not know the field",
    ]);
  });

  it("from a file is refused for the same field", () => {
    const parsed = parsePolicyObject(object({ drain: { speed: "fast" } }), inFile);
    expect("problems" in parsed && parsed.problems.map(sentenceOf)).toEqual([
      "spec.drain.speed: found an unknown field, expected timeout, onTimeout, podRules, onSingleReplica or budgetShare",
    ]);
  });

  it("from the cluster keeps an action of an unknown type, as one that cannot be run", () => {
    const actions = [
      { name: "new", at: "AtEnd", carrierPigeon: { to: "home" } },
      { name: "old", at: "AtEnd", slack: { url: "https://a.example/x" } },
    ];
    const parsed = parsePolicyObject(object({ actions }), inCluster);
    expect("policy" in parsed && parsed.policy.actions.map(({ how }) => how)).toEqual([
      { kind: "unknown", field: "carrierPigeon" },
      { kind: "slack", url: "https://a.example/x", message: "{{summary}}" },
    ]);
    expect("warnings" in parsed && parsed.warnings.map(({ text }) => text)).toEqual([
      "spec.actions[0].carrierPigeon is ignored: this version does not know the field",
    ]);
  });

  it("from a file is refused for such an action", () => {
    const actions = [{ name: "new", at: "AtEnd", slak: { url: "https://a.example/x" } }];
    const parsed = parsePolicyObject(object({ actions }), inFile);
    expect("problems" in parsed && parsed.problems.map(sentenceOf)).toEqual([
      "spec.actions[0].slak: found an unknown field, expected slack",
    ]);
  });

  it("is not modified", () => {
    const written = object({ windows: [{ start: "09:00", end: "17:00" }], gates: null });
    const before = structuredClone(written);
    parsePolicyObject(written, inCluster);
    expect(written).toEqual(before);
  });

  it("treats null as not set, but an empty list item as a mistake", () => {
    expect(parsePolicyObject(object({ lifetime: { max: null } }), inCluster)).toMatchObject({
      policy: { lifetime: { minMs: 0, reserveMs: 1_800_000 } },
    });
    const parsed = parsePolicyObject(object({ windows: [null] }), inCluster);
    expect("problems" in parsed && parsed.problems.map(sentenceOf)).toEqual([
      "spec.windows[0]: found nothing, expected an object with name, type, timeZone",
    ]);
  });

  it.each([
    [undefined, "found nothing, expected a DeparturePolicy"],
    [null, "found nothing, expected a DeparturePolicy"],
    [[], "found an empty list, expected a DeparturePolicy"],
    ["policy", 'found "policy", expected a DeparturePolicy'],
    [{}, "kind: found nothing, expected DeparturePolicy"],
  ])("that is %j is refused in a sentence", (written, sentence) => {
    const parsed = parsePolicyObject(written, inCluster);
    expect("problems" in parsed && sentenceOf(parsed.problems[0] ?? never())).toBe(sentence);
  });

  it("cannot change a prototype through its field names", () => {
    const spec: unknown = JSON.parse('{"__proto__": {"paused": true}, "constructor": {}}');
    const parsed = parsePolicyObject(object(spec), inCluster);
    expect(parsed).toMatchObject({ policy: { paused: false } });
    expect("warnings" in parsed && parsed.warnings).toHaveLength(2);
  });
});

function never(): never {
  throw new Error("there is no problem");
}
