import { leanObject } from "../../audit/objects/lean-object.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { isFields } from "../../core/json/json-field.ts";
import { isLastcallError } from "../../errors.ts";
import { listPages } from "../../kube/watch/list.ts";
import type { AuditedKind } from "../input/audited-kind.ts";

/** Small pages: of each kind one is held at a time. */
const pageSize = 100;

/**
 * The objects of some namespaced kinds, one namespace after another, lean. An API server lists in
 * the order of `namespace/name`, so that all kinds can be read side by side: what is held is one
 * page of each kind and one namespace, however large the cluster is. Kinds that the server does
 * not know are passed over.
 */
export async function* namespaceBatches(
  api: KubeApi,
  kinds: readonly AuditedKind[],
  signal: AbortSignal,
): AsyncGenerator<readonly unknown[]> {
  const streams = kinds.map((kind) => new ObjectStream(objectsOf(api, kind, signal)));
  await Promise.all(streams.map((stream) => stream.advance()));
  for (;;) {
    const keys = streams.flatMap((stream) => stream.namespaceKey ?? []);
    const key = keys.sort().at(0);
    if (key === undefined) return;
    const batch: unknown[] = [];
    for (const stream of streams) {
      while (stream.namespaceKey === key) {
        batch.push(stream.head);
        await stream.advance();
      }
    }
    yield batch;
  }
}

type Lean = ReturnType<typeof leanObject>;

class ObjectStream {
  readonly #objects: AsyncGenerator<Lean>;
  head: Lean | undefined;

  constructor(objects: AsyncGenerator<Lean>) {
    this.#objects = objects;
  }

  async advance(): Promise<void> {
    const next = await this.#objects.next();
    this.head = next.done === true ? undefined : next.value;
  }

  /** As the server orders: `shop-eu/` comes before `shop/`. */
  get namespaceKey(): string | undefined {
    if (this.head === undefined) return undefined;
    const { namespace } = this.head.metadata as { namespace?: string };
    return `${namespace ?? ""}/`;
  }
}

async function* objectsOf(
  api: KubeApi,
  { path, apiVersion, kind }: AuditedKind,
  signal: AbortSignal,
): AsyncGenerator<Lean> {
  try {
    for await (const page of listPages(api, path, { limit: pageSize, urgency: "Later", signal })) {
      const lean = page.filter(isFields).map((item) => leanObject({ ...item, apiVersion, kind }));
      yield* lean;
    }
  } catch (error) {
    if (isLastcallError(error) && error.code === "NOT_FOUND") return;
    throw error;
  }
}
