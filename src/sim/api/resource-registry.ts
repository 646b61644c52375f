import { apiVersionOf, builtInTypes, type ResourceType } from "./resource-type.ts";

/** The kinds that are served now; CustomResourceDefinitions add to it and take away. */
export class ResourceRegistry {
  readonly #types = new Map<string, ResourceType>();

  constructor() {
    for (const type of builtInTypes) this.add(type);
  }

  add(type: ResourceType): void {
    this.#types.set(key(apiVersionOf(type), type.plural), type);
  }

  remove(type: ResourceType): void {
    this.#types.delete(key(apiVersionOf(type), type.plural));
  }

  find(apiVersion: string, plural: string): ResourceType | undefined {
    return this.#types.get(key(apiVersion, plural));
  }

  findKind(apiVersion: string, kind: string): ResourceType | undefined {
    return this.all().find((type) => type.kind === kind && apiVersionOf(type) === apiVersion);
  }

  /** In the order in which they came to be served. */
  all(): readonly ResourceType[] {
    return [...this.#types.values()];
  }
}

function key(apiVersion: string, plural: string): string {
  return `${apiVersion}|${plural}`;
}
