import type { ModelObject } from "../../src/sim/api/store/object-store.ts";
import type { At, TraceEvent } from "./trace.ts";

type Change = TraceEvent & { readonly kind: "Change" };

/** What the API server stored at earlier instants, for those that show it again. */
export class PastStates {
  readonly #changes = new Map<string, Change[]>();

  record(change: Change): void {
    const known = this.#changes.get(change.storage);
    if (known === undefined) this.#changes.set(change.storage, [change]);
    else known.push(change);
  }

  /** The objects of a storage as they were, and the version of that state. */
  at(
    storage: string,
    at: At,
  ): { readonly items: readonly ModelObject[]; readonly version: string } {
    const items = new Map<string, ModelObject>();
    let version = "1";
    for (const change of this.#changes.get(storage) ?? []) {
      if (change.at > at) break;
      const { name, resourceVersion } = change.object.metadata;
      if (change.type === "DELETED") items.delete(name);
      else items.set(name, change.object);
      version = resourceVersion;
    }
    return { items: [...items.values()], version };
  }
}
