import {
  type LabelRequirement,
  type LabelSelector,
  type Labels,
  meetsRequirement,
} from "../../../core/cluster/pod.ts";
import { fieldsOf } from "../../../core/json/json-field.ts";
import { badRequest, expired } from "../api-refusal.ts";
import { type ApiContext, apiVersionOf, present, type ResourceType } from "../resource-registry.ts";
import type { ModelObject } from "./object-store.ts";

export type LabelMatcher = (labels: Labels | undefined) => boolean;

const key = "[A-Za-z0-9][-A-Za-z0-9_./]*";
const setBased = new RegExp(`^(${key})\\s+(in|notin)\\s+\\(([^()]*)\\)$`);
const equality = new RegExp(`^(${key})\\s*(==|=|!=|>|<)\\s*([-A-Za-z0-9_.]*)$`);
const presence = new RegExp(`^(!?)\\s*(${key})$`);
const noLabels: Labels = Object.freeze({});

/**
 * Parses the query parameter `labelSelector`, such as `a=b,c in (x,y),!d`; throws a 400 refusal if
 * it is invalid. Source: k8s.io/apimachinery `pkg/labels/selector.go`.
 */
function parseLabelSelector(text: string): LabelMatcher {
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
 * The fields besides name and namespace that can be selected for each storage. Source: the kinds'
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
 * Parses the query parameter `fieldSelector`, such as `spec.nodeName=n1,status.phase!=Failed`;
 * throws a 400 refusal for a field that the kind does not support.
 */
function parseFieldSelector(text: string, type: ResourceType): readonly FieldTerm[] {
  const terms = text
    .split(",")
    .filter((part) => part !== "")
    .map(parseTerm);
  for (const term of terms) checkSupported(term, { type, text });
  return terms;
}

function matchesFields(object: ModelObject, terms: readonly FieldTerm[]): boolean {
  return terms.every((term) => (fieldOf(object, term.path) === term.value) === term.equal);
}

/** The value that a term requires of `path`, for use with an index. */
function demanded(terms: readonly FieldTerm[], path: string): string | undefined {
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

export type Query = Readonly<Record<string, string>>;
export type ObjectFilter = (object: ModelObject) => boolean;

export interface ListScope {
  readonly type: ResourceType;
  /** Undefined for all namespaces, and for cluster-scoped kinds. */
  readonly namespace: string | undefined;
  readonly query: Query;
}

/** The objects that a request's selectors and namespace select. Throws a 400 refusal. */
export function filterOf({ type, namespace, query }: ListScope): ObjectFilter {
  const labels = query.labelSelector ? parseLabelSelector(query.labelSelector) : undefined;
  const fields = parseFieldSelector(query.fieldSelector ?? "", type);
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (labels === undefined || labels(object.metadata.labels)) &&
    matchesFields(object, fields);
}

/** The selected objects, ordered by key. */
export function selectObjects(context: ApiContext, scope: ListScope): readonly ModelObject[] {
  const collection = context.store.collection(scope.type.storage);
  const fields = parseFieldSelector(scope.query.fieldSelector ?? "", scope.type);
  const nodeName = scope.type.storage === "pods" ? demanded(fields, "spec.nodeName") : undefined;
  const candidates = nodeName ? collection.onNode(nodeName) : collection.list(scope.namespace);
  return candidates.filter(filterOf(scope));
}

interface ObjectPage {
  readonly revision: number;
  readonly rest: readonly ModelObject[];
}

/** The largest number of paginated lists under way; beyond it the oldest expires with 410. */
const pagesMax = 64;

/** Lists, whole or paginated over one state: every page has the revision of the first one. */
export class ObjectLister {
  readonly #context: ApiContext;
  readonly #pages = new Map<string, ObjectPage>();
  #nextToken = 1;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  list(scope: ListScope): object {
    const token = scope.query.continue;
    const page = token ? this.#pageOf(token) : this.#firstPage(scope);
    const limit = Number(scope.query.limit ?? 0) || page.rest.length;
    const items = page.rest.slice(0, limit);
    const rest = page.rest.slice(limit);
    const metadata =
      rest.length === 0
        ? { resourceVersion: String(page.revision) }
        : {
            resourceVersion: String(page.revision),
            continue: this.#remember({ revision: page.revision, rest }),
            remainingItemCount: rest.length,
          };
    return Object.freeze({
      kind: `${scope.type.kind}List`,
      apiVersion: apiVersionOf(scope.type),
      metadata,
      items: items.map((object) => listItem(object, scope.type)),
    });
  }

  /** Makes every paginated list answer 410 from now on, as after a compaction of etcd. */
  forget(): void {
    this.#pages.clear();
  }

  #firstPage(scope: ListScope): ObjectPage {
    return {
      revision: this.#context.store.revision,
      rest: selectObjects(this.#context, scope),
    };
  }

  #pageOf(token: string): ObjectPage {
    if (!/^p\d+$/.test(token)) throw badRequest("continue key is not valid: encoding is invalid");
    const page = this.#pages.get(token);
    if (page) return page;
    throw expired(
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results.",
    );
  }

  #remember(page: ObjectPage): string {
    const token = `p${this.#nextToken++}`;
    this.#pages.set(token, page);
    const [oldest] = this.#pages.keys();
    if (this.#pages.size > pagesMax && oldest !== undefined) this.#pages.delete(oldest);
    return token;
  }
}

/** Items of a built-in list have no kind of their own, as the server sends them. */
function listItem(object: ModelObject, type: ResourceType): object {
  const shown = present(object, type);
  if (type.custom) return shown;
  const { apiVersion: _a, kind: _k, ...rest } = shown;
  return rest;
}
