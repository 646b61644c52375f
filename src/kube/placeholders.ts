import type { Clock } from "../contracts/clock.ts";
import type { KubeApi, KubeRequest } from "../contracts/kube-api.ts";
import type { FollowedPlaceholders, Placeholders } from "../contracts/placeholders.ts";
import type { Rng } from "../core/chance/rng.ts";
import type { PlaceholderFacts, PlaceholderOrder } from "../core/drain/placeholder-plan.ts";
import { ChangeListeners } from "./change-listeners.ts";
import { listAll } from "./list.ts";
import { apiError } from "./object/api-error.ts";
import {
  type PlaceholderPlace,
  placeholderObject,
  placeholderOf,
  placeholderSelector,
  translatePlaceholder,
} from "./placeholder-object.ts";
import { Reflector } from "./reflector.ts";

export interface KubePlaceholdersOptions extends PlaceholderPlace {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** Placeholder pods in the controller's own namespace, told by their labels. */
export class KubePlaceholders implements Placeholders {
  readonly #options: KubePlaceholdersOptions;
  readonly #path: string;

  constructor(options: KubePlaceholdersOptions) {
    this.#options = options;
    this.#path = `/api/v1/namespaces/${options.namespace}/pods`;
  }

  async list(): Promise<readonly PlaceholderFacts[]> {
    const query = { labelSelector: placeholderSelector };
    return (await listAll(this.#options.api, this.#path, query)).map(translatePlaceholder);
  }

  follow(departureUid: string, signal: AbortSignal): FollowedPlaceholders {
    const { api, clock, rng } = this.#options;
    const changes = new ChangeListeners();
    const reflector = new Reflector<PlaceholderFacts>({
      api,
      clock,
      rng,
      path: this.#path,
      query: { labelSelector: `${placeholderSelector},${placeholderOf}=${departureUid}` },
      translate: translatePlaceholder,
      onChange: () => changes.notify(),
    });
    // Whoever follows hears of a failure through `synced`; after that the watch mends itself.
    reflector.run(signal).catch(() => undefined);
    return {
      synced: () => reflector.synced,
      placeholders: () => [...reflector.items().values()],
      onChange: (listener) => changes.listen(listener),
    };
  }

  async create(order: PlaceholderOrder): Promise<void> {
    const body = placeholderObject(order, this.#options);
    await this.#send({ method: "POST", path: this.#path, body }, 409);
  }

  async remove(name: string): Promise<void> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
    await this.#send({ method: "DELETE", path: `${this.#path}/${name}`, body }, 404);
  }

  /** `done` is the answer that says that somebody, most likely we, did it before. */
  async #send(request: KubeRequest, done: number): Promise<void> {
    const answer = await this.#options.api.send(request);
    if (answer.status >= 300 && answer.status !== done) throw apiError(request, answer);
  }
}
