import { badRequest } from "./api-refusal.ts";
import { recordOf } from "./frozen-copy.ts";
import type { ModelObject } from "./model-object.ts";
import { apiVersionOf, type ResourceType } from "./resource-type.ts";

export interface FieldTerm {
  readonly path: string;
  readonly equal: boolean;
  readonly value: string;
}

const everywhere = ["metadata.name", "metadata.namespace"];

const involved = ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"];

/** Fields besides name and namespace by which each storage can be asked. Source: the kinds' `SelectableFields`. */
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
  if (path === "source") return String(recordOf(object.source).component ?? "");
  let value: unknown = object;
  for (const part of path.split(".")) value = recordOf(value)[part];
  return String(value ?? (falseWhenAbsent.has(path) ? "false" : ""));
}
