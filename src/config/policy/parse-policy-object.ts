import { isFields, listOf, valueAt } from "../../core/json/json-field.ts";
import { type BadPolicy, defaultNodeSelector, type Policy } from "../../core/policy/policy.ts";
import { describeValue, type Problem, pathOf, sentenceOf } from "../problem.ts";
import type { RuleWorld } from "../schema/field-schema.ts";
import { apiGroup, apiVersion, policyDocument, policyKind } from "../schema/policy-document.ts";
import type { PolicySpec } from "../schema/policy-schema.ts";
import { checkRules, checkShape } from "../schema/shape-check.ts";
import type { Pointer } from "../yaml-text.ts";
import { nodeSelectorOf, policyFromSpec } from "./policy-from-spec.ts";

type ParsedPolicy =
  | { readonly policy: Policy; readonly warnings: readonly PolicyRemark[] }
  | {
      readonly problems: readonly Problem[];
      /** What is still known about the policy's nodes. */
      readonly claim: PolicyClaim;
    };

/** A field that cannot be understood is undefined. */
type PolicyClaim = Pick<BadPolicy, "weight" | "nodeSelector">;

/** A warning about a valid policy. */
interface PolicyRemark {
  readonly pointer: Pointer;
  readonly text: string;
}

interface ParseOptions extends RuleWorld {
  /**
   * What to do with a field that the schema does not know. In a file it is a mistake (`Refuse`); in
   * a cluster whose CRDs are newer than this process it is a newer field (`Warn`), and refusing it
   * would stop every departure for the length of an upgrade.
   */
  readonly unknownFields: "Refuse" | "Warn";
}

/**
 * Reads one DeparturePolicy object, sets its defaults, and returns either the policy that core
 * reads or every mistake in the object. Null counts as not set, as for the API server.
 */
export function parsePolicyObject(object: unknown, options: ParseOptions): ParsedPolicy {
  const identity = kindProblems(object);
  if (identity.length > 0) return { problems: identity, claim: {} };
  const { value, problems: all } = checkShape(policyDocument, object);
  const isNews = (problem: Problem) => problem.unknownField && options.unknownFields === "Warn";
  const shape = all.filter((problem) => !isNews(problem));
  markNewerActions(value, all.filter(isNews));
  const broken = shape.map(({ pointer }) => pointer);
  const rules = checkRules({ schema: policyDocument, value, broken, world: options });
  if (shape.length + rules.length > 0) {
    const claim = claimOf(value as PolicyDocument, [...all, ...rules]);
    return { problems: [...shape, ...rules], claim };
  }
  const { metadata, spec } = value as PolicyDocument;
  const { name, generation, uid } = metadata;
  const policy = policyFromSpec(
    { name, ...(generation !== undefined && { generation }), ...(uid !== undefined && { uid }) },
    spec,
  );
  const news = all.filter(isNews).map((problem) => ({
    pointer: problem.pointer,
    text: `${pathOf(problem.pointer)} is ignored: this version does not know the field`,
  }));
  return deepFreeze({ policy, warnings: [...news, ...remarksOn(value as PolicyDocument)] });
}

/**
 * Keeps an action of a type that this version does not know: it cannot be run, and only this action
 * is reported, not the policy. `value` is our own copy of the object.
 */
function markNewerActions(value: unknown, news: readonly Problem[]): void {
  const actions = listOf(valueAt(value, ["spec", "actions"]));
  for (const { pointer } of news) {
    const [spec, list, index, field, ...deeper] = pointer;
    const action = actions[Number(index)];
    if (spec !== "spec" || list !== "actions" || deeper.length > 0 || !isFields(action)) continue;
    Object.assign(action, { newerType: String(field) });
  }
}

interface PolicyDocument {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly generation?: number;
    readonly uid?: string;
  };
  readonly spec: PolicySpec;
}

/** A selector with a field that this version does not know may select more than it seems to. */
function claimOf({ spec }: PolicyDocument, problems: readonly Problem[]): PolicyClaim {
  const isSound = (field: keyof PolicySpec): boolean =>
    problems.every(
      ({ pointer }) => !["spec", field].every((step, at) => (pointer[at] ?? step) === step),
    );
  return {
    ...(isSound("weight") && { weight: spec.weight }),
    ...(isSound("nodeSelector") && {
      nodeSelector: spec.nodeSelector ? nodeSelectorOf(spec.nodeSelector) : defaultNodeSelector,
    }),
  };
}

/** For an object of another kind, all other mistakes would be noise, including its version. */
function kindProblems(object: unknown): readonly Problem[] {
  if (typeof object !== "object" || object === null || Array.isArray(object)) {
    const found = describeValue(object);
    return [{ pointer: [], found, wanted: "a DeparturePolicy", unknownField: false }];
  }
  const wanted = { kind: policyKind, apiVersion: `${apiGroup}/${apiVersion}` };
  return (["kind", "apiVersion"] as const)
    .filter((name) => (object as Record<string, unknown>)[name] !== wanted[name])
    .map((name) => ({
      pointer: [name],
      found: describeValue((object as Record<string, unknown>)[name]),
      wanted: wanted[name],
      unknownField: false,
    }))
    .slice(0, 1);
}

/** Warns about what is allowed but rarely intended. */
function remarksOn({ metadata, spec }: PolicyDocument): readonly PolicyRemark[] {
  const remarks: PolicyRemark[] = [];
  if (metadata.namespace !== undefined) {
    remarks.push({
      pointer: ["metadata", "namespace"],
      text: "metadata.namespace is ignored: a DeparturePolicy belongs to the whole cluster",
    });
  }
  if (spec.nodeSelector?.nodeSelectorTerms.length === 0) {
    remarks.push({
      pointer: ["spec", "nodeSelector"],
      text: "spec.nodeSelector has no term and selects no node; omit it for the known Spot labels",
    });
  }
  if (spec.lifetime.max === undefined && spec.windows.length > 0) {
    remarks.push({
      pointer: ["spec", "windows"],
      text: "spec.windows has no effect: without spec.lifetime.max no departure is planned",
    });
  }
  return [...remarks, ...silenceRemarks(spec)];
}

/** A silence is meant for the departing machine: without its name it silences all machines. */
function silenceRemarks({ actions }: PolicySpec): readonly PolicyRemark[] {
  const isNamed = (matcher: string) => /\{\{\s*(node|instanceId|providerID)\s*\}\}/.test(matcher);
  return actions.flatMap(({ alertmanagerSilence }, index) => {
    if (alertmanagerSilence === undefined || alertmanagerSilence.matchers.some(isNamed)) return [];
    const pointer = ["spec", "actions", index, "alertmanagerSilence", "matchers"];
    const text = `${pathOf(pointer)} names no machine, so the alerts of all machines are silenced; add a matcher such as instance=~"{{node}}:.*"`;
    return [{ pointer, text }];
  });
}

/** Freezes plain data recursively, and returns it. */
function deepFreeze<Data>(data: Data): Data {
  if (typeof data !== "object" || data === null || Object.isFrozen(data)) return data;
  for (const part of Object.values(data)) deepFreeze(part);
  return Object.freeze(data);
}

interface ClusterPolicy {
  readonly policy: Policy;
  /** Warnings about the policy, such as a field of a newer version: one sentence each. */
  readonly remarks: readonly string[];
}

/**
 * Reads a DeparturePolicy of a cluster. The CRD rejects invalid ones, but an older CRD, or a newer
 * one with values that this version does not know, may have accepted one. It keeps its weight and
 * its selector, so that it stops its own nodes and no others.
 */
export function readClusterPolicy(object: unknown, world: RuleWorld): ClusterPolicy | BadPolicy {
  const parsed = parsePolicyObject(object, { ...world, unknownFields: "Warn" });
  if ("policy" in parsed) {
    return { policy: parsed.policy, remarks: parsed.warnings.map(({ text }) => text) };
  }
  const { name, generation, uid } = metadataOf(object);
  return {
    name: typeof name === "string" ? name : "",
    problem: parsed.problems.map(sentenceOf).join("; "),
    ...parsed.claim,
    ...(typeof generation === "number" && { generation }),
    ...(typeof uid === "string" && { uid }),
  };
}

/**
 * A reader that remembers each policy. Only a write of the spec counts up the generation, and most
 * writes are those of the status, so most of what a watch sends is known.
 */
export function clusterPolicyReader(
  world: RuleWorld,
): (object: unknown) => ClusterPolicy | BadPolicy {
  const known = new Map<
    unknown,
    { uid: unknown; generation: unknown; read: ClusterPolicy | BadPolicy }
  >();
  return (object) => {
    const { name, uid, generation } = metadataOf(object);
    const before = known.get(name);
    const isIdentified = uid !== undefined && generation !== undefined;
    if (isIdentified && before?.uid === uid && before?.generation === generation)
      return before.read;
    const read = readClusterPolicy(object, world);
    known.set(name, { uid, generation, read });
    return read;
  };
}

function metadataOf(object: unknown): Readonly<Record<string, unknown>> {
  return (object as { readonly metadata?: Readonly<Record<string, unknown>> }).metadata ?? {};
}
