import type { ApiContext } from "../api-context.ts";
import { badRequest, expired } from "../api-refusal.ts";
import { apiVersionOf, present, type ResourceType } from "../resource-registry.ts";
import type { ModelObject } from "./model-object.ts";
import { demanded, matchesFields, parseFieldSelector, parseLabelSelector } from "./selector.ts";

export type Query = Readonly<Record<string, string>>;
export type ObjectFilter = (object: ModelObject) => boolean;

export interface ListScope {
  readonly type: ResourceType;
  /** Undefined: all namespaces, and cluster-scoped kinds. */
  readonly namespace: string | undefined;
  readonly query: Query;
}

/** Which objects a request's selectors and namespace choose. Throws the refusal 400. */
export function filterOf({ type, namespace, query }: ListScope): ObjectFilter {
  const labels = query.labelSelector ? parseLabelSelector(query.labelSelector) : undefined;
  const fields = parseFieldSelector(query.fieldSelector ?? "", type);
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (labels === undefined || labels(object.metadata.labels)) &&
    matchesFields(object, fields);
}

/** The chosen objects in the order of keys. */
export function selectObjects(context: ApiContext, scope: ListScope): readonly ModelObject[] {
  const collection = context.store.collection(scope.type.storage);
  const fields = parseFieldSelector(scope.query.fieldSelector ?? "", scope.type);
  const nodeName = scope.type.storage === "pods" ? demanded(fields, "spec.nodeName") : undefined;
  const candidates = nodeName ? collection.onNode(nodeName) : collection.list(scope.namespace);
  return candidates.filter(filterOf(scope));
}

interface Page {
  readonly revision: number;
  readonly rest: readonly ModelObject[];
}

/** At most so many lists can be under way in pages; the oldest is forgotten and answers 410. */
const pagesMax = 64;

/** Lists, whole or in pages of one state: every page shows the revision of the first one. */
export class ObjectLister {
  readonly #context: ApiContext;
  readonly #pages = new Map<string, Page>();
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

  /** Every list in pages answers 410 from now on, as after a compaction of etcd. */
  forget(): void {
    this.#pages.clear();
  }

  #firstPage(scope: ListScope): Page {
    return {
      revision: this.#context.store.revision,
      rest: selectObjects(this.#context, scope),
    };
  }

  #pageOf(token: string): Page {
    if (!/^p\d+$/.test(token)) throw badRequest("continue key is not valid: encoding is invalid");
    const page = this.#pages.get(token);
    if (page) return page;
    throw expired(
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results.",
    );
  }

  #remember(page: Page): string {
    const token = `p${this.#nextToken++}`;
    this.#pages.set(token, page);
    const [oldest] = this.#pages.keys();
    if (this.#pages.size > pagesMax && oldest !== undefined) this.#pages.delete(oldest);
    return token;
  }
}

/** The items of a built-in list carry no kind of their own, as the server sends them. */
function listItem(object: ModelObject, type: ResourceType): object {
  const shown = present(object, type);
  if (type.custom) return shown;
  const { apiVersion: _a, kind: _k, ...rest } = shown;
  return rest;
}
