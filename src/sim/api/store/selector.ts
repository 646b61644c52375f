import {
  type LabelRequirement,
  type LabelSelector,
  type Labels,
  meetsRequirement,
} from "../../../core/cluster/placement.ts";
import { fieldsOf } from "../../../core/json/json-field.ts";
import { badRequest } from "../api-refusal.ts";
import { apiVersionOf, type ResourceType } from "../resource-registry.ts";
import type { ModelObject } from "./model-object.ts";

export type LabelMatcher = (labels: Labels | undefined) => boolean;

const key = "[A-Za-z0-9][-A-Za-z0-9_./]*";
const setBased = new RegExp(`^(${key})\\s+(in|notin)\\s+\\(([^()]*)\\)$`);
const equality = new RegExp(`^(${key})\\s*(==|=|!=|>|<)\\s*([-A-Za-z0-9_.]*)$`);
const presence = new RegExp(`^(!?)\\s*(${key})$`);
const noLabels: Labels = Object.freeze({});

/**
 * Reads the `labelSelector` query parameter, such as `a=b,c in (x,y),!d`; throws the refusal 400
 * for anything else. Source: k8s.io/apimachinery `pkg/labels/selector.go`.
 */
export function parseLabelSelector(text: string): LabelMatcher {
  const requirements = splitOutsideParentheses(text).map(parseRequirement);
  return matcherOf(requirements);
}

/** A LabelSelector of an object; `{}` selects everything. */
export function labelMatcher(selector: LabelSelector): LabelMatcher {
  const equal = Object.entries(selector.matchLabels ?? {}).map(([label, value]) => ({
    key: label,
    operator: "In" as const,
    values: [value],
  }));
  return matcherOf([...equal, ...(selector.matchExpressions ?? [])]);
}

function matcherOf(requirements: readonly LabelRequirement[]): LabelMatcher {
  return (labels = noLabels) => requirements.every((one) => meetsRequirement(labels, one));
}

const operators = { "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt" } as const;

function parseRequirement(text: string): LabelRequirement {
  const set = setBased.exec(text);
  if (set) {
    const values = (set[3] ?? "").split(",").map((value) => value.trim());
    return { key: set[1] ?? "", operator: set[2] === "in" ? "In" : "NotIn", values };
  }
  const equal = equality.exec(text);
  if (equal) {
    const operator = operators[equal[2] as keyof typeof operators];
    return { key: equal[1] ?? "", operator, values: [equal[3] ?? ""] };
  }
  const present = presence.exec(text);
  if (!present) throw badRequest(`unable to parse requirement: ${text}`);
  return { key: present[2] ?? "", operator: present[1] ? "DoesNotExist" : "Exists", values: [] };
}

function splitOutsideParentheses(text: string): string[] {
  return text
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

interface FieldTerm {
  readonly path: string;
  readonly equal: boolean;
  readonly value: string;
}

const everywhere = ["metadata.name", "metadata.namespace"];

const involved = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

/**
 * Fields besides name and namespace by which each storage can be asked. Source: the kinds'
 * `SelectableFields`.
 */
const selectable: Readonly<Record<string, readonly string[]>> = {
  pods: [
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
  ],
  nodes: ["spec.unschedulable"],
  namespaces: ["status.phase"],
  secrets: ["type"],
  events: [
    ...involved.map((field) => `involvedObject.${field}`),
    ...involved.map((field) => `regarding.${field}`),
    "reason",
    "type",
    "source",
    "reportingComponent",
  ],
  "replicasets.apps": ["status.replicas"],
  "jobs.batch": ["status.successful"],
};

const falseWhenAbsent = new Set(["spec.unschedulable", "spec.hostNetwork"]);

/**
 * Reads the `fieldSelector` query parameter, such as `spec.nodeName=n1,status.phase!=Failed`;
 * throws the refusal 400 for a field that the kind cannot be asked by.
 */
export function parseFieldSelector(text: string, type: ResourceType): readonly FieldTerm[] {
  const terms = text
    .split(",")
    .filter((part) => part !== "")
    .map(parseTerm);
  for (const term of terms) checkSupported(term, { type, text });
  return terms;
}

export function matchesFields(object: ModelObject, terms: readonly FieldTerm[]): boolean {
  return terms.every((term) => (fieldOf(object, term.path) === term.value) === term.equal);
}

/** The value that one of the terms demands of `path`, for use with an index. */
export function demanded(terms: readonly FieldTerm[], path: string): string | undefined {
  return terms.find((term) => term.equal && term.path === path)?.value;
}

function parseTerm(text: string): FieldTerm {
  const match = /^([^!=]+)(==|=|!=)(.*)$/.exec(text);
  if (!match) throw badRequest(`invalid selector: '${text}'; can't understand '${text}'`);
  const path = (match[1] ?? "").replace(/^regarding\./, "involvedObject.");
  return { path, equal: match[2] !== "!=", value: match[3] ?? "" };
}

function checkSupported(term: FieldTerm, asked: { type: ResourceType; text: string }): void {
  const { type, text } = asked;
  const own = type.custom?.selectableFields ?? selectable[type.storage] ?? [];
  if (everywhere.includes(term.path) || own.includes(term.path)) return;
  const gvr = `${apiVersionOf(type)}, Resource=${type.plural}`;
  const place = type.group === "" ? `/${gvr}` : gvr;
  throw badRequest(
    `Unable to find "${place}" that match label selector "", field selector "${text}": field label not supported: ${term.path}`,
  );
}

function fieldOf(object: ModelObject, path: string): string {
  if (path === "source") return String(fieldsOf(object.source).component ?? "");
  let value: unknown = object;
  for (const part of path.split(".")) value = fieldsOf(value)[part];
  return String(value ?? (falseWhenAbsent.has(path) ? "false" : ""));
}
