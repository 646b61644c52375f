import type {
  FrozenPolicy,
  HeldNode,
  NamedDeparture,
  OperatorResult,
  OperatorWrites,
} from "../contracts/cluster.ts";
import type { KubeObject, KubeRequest, KubeSender } from "../contracts/kube-api.ts";
import { holdAnnotation } from "../core/cluster/node.ts";
import { fieldsOf, instantOf } from "../core/json/json-field.ts";
import { formatInstant, type Instant } from "../core/time/time.ts";
import { apiError } from "./object/api-error.ts";
import { departurePath, nodePath, policyPath } from "./object/paths.ts";

/** An object is written by others too: one that was changed elsewhere meanwhile is read again. */
const mostTries = 4;

const gone: OperatorResult = { kind: "Changed", found: "it is not there any more" };

export class KubeOperatorWrites implements OperatorWrites {
  readonly #api: KubeSender;

  constructor(api: KubeSender) {
    this.#api = api;
  }

  hold(node: HeldNode, value: string | null): Promise<OperatorResult> {
    return this.#patch(nodePath(node.name), {
      metadata: { annotations: { [holdAnnotation]: value } },
      refusal: ({ metadata = {} }) => {
        if (metadata.uid !== node.uid) return "another node has its name now";
        const found = metadata.annotations?.[holdAnnotation] ?? null;
        if (found === node.seen) return undefined;
        return found === null ? "it has no hold any more" : `its hold is ${JSON.stringify(found)}`;
      },
    });
  }

  freeze(policy: FrozenPolicy, until: Instant | null): Promise<OperatorResult> {
    const freezeUntil = until === null ? null : formatInstant(until);
    return this.#patch(policyPath(policy.name), {
      spec: { gates: { freezeUntil } },
      refusal: (object) => {
        const found = instantOf(fieldsOf(fieldsOf(object.spec).gates).freezeUntil) ?? null;
        if (found === policy.seen) return undefined;
        return found === null
          ? "it is not frozen any more"
          : `frozen until ${formatInstant(found)}`;
      },
    });
  }

  async withdraw({ name, uid }: NamedDeparture): Promise<OperatorResult> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid } };
    const request: KubeRequest = { method: "DELETE", path: departurePath(name), body };
    const answer = await this.#api.send(request);
    if (answer.status === 404) return gone;
    if (answer.status === 409) {
      return { kind: "Changed", found: "another departure has its name now" };
    }
    if (answer.status >= 300) throw apiError(request, answer);
    return { kind: "Done" };
  }

  /** Reads, looks whether it is as it was seen, and writes against the version that was read. */
  async #patch(path: string, change: CheckedChange): Promise<OperatorResult> {
    const { refusal, metadata, ...fields } = change;
    for (let tries = 1; ; tries += 1) {
      const object = await this.#read(path);
      if (object === undefined) return gone;
      const found = refusal(object);
      if (found !== undefined) return { kind: "Changed", found };
      const { uid, resourceVersion } = object.metadata ?? {};
      const request: KubeRequest = {
        method: "PATCH",
        path,
        patchType: "application/merge-patch+json",
        body: { metadata: { ...metadata, uid, resourceVersion }, ...fields },
      };
      const answer = await this.#api.send(request);
      if (answer.status === 404) return gone;
      if (answer.status === 409 && tries < mostTries) continue;
      if (answer.status >= 300) throw apiError(request, answer);
      return { kind: "Done" };
    }
  }

  async #read(path: string): Promise<KubeObject | undefined> {
    const request: KubeRequest = { method: "GET", path };
    const answer = await this.#api.send(request);
    if (answer.status === 404) return undefined;
    if (answer.status !== 200) throw apiError(request, answer);
    return answer.body as KubeObject;
  }
}

interface CheckedChange {
  readonly metadata?: { readonly annotations: Readonly<Record<string, string | null>> };
  readonly spec?: Readonly<Record<string, unknown>>;
  /** What is other than it was seen; undefined where nothing is. */
  readonly refusal: (object: KubeObject) => string | undefined;
}
