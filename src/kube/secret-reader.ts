import type { SecretReader } from "../contracts/action-runner.ts";
import type { KubeApi } from "../contracts/kube-api.ts";
import { fieldsOf, textOf } from "../core/json/json-field.ts";
import type { SecretRef } from "../core/policy/action.ts";
import { LastcallError } from "../errors.ts";
import { apiError } from "./object/api-error.ts";

/**
 * Reads Secrets of one namespace, each when it is needed, so that a rotated one takes effect at
 * once.
 */
export class KubeSecretReader implements SecretReader {
  readonly #api: KubeApi;
  readonly #namespace: string;

  constructor(api: KubeApi, namespace: string) {
    this.#api = api;
    this.#namespace = namespace;
  }

  async read({ name, key }: SecretRef, signal: AbortSignal): Promise<string> {
    const path = `/api/v1/namespaces/${this.#namespace}/secrets/${name}`;
    const request = { method: "GET", path, signal } as const;
    const answer = await this.#api.send(request);
    const what = `Cannot read the key ${key} of Secret ${this.#namespace}/${name}`;
    if (answer.status === 404) {
      throw new LastcallError("SECRET_MISSING", `${what}: there is no such Secret, create it`);
    }
    if (answer.status === 401 || answer.status === 403) {
      const problem = `${what}: reading it is forbidden, grant get on it (docs/actions.md)`;
      throw new LastcallError("SECRET_MISSING", problem);
    }
    if (answer.status >= 300) throw apiError(request, answer);
    const encoded = textOf(fieldsOf(fieldsOf(answer.body).data)[key]);
    if (encoded === undefined) {
      throw new LastcallError("SECRET_MISSING", `${what}: the Secret has no such key, add it`);
    }
    return Buffer.from(encoded, "base64").toString("utf8");
  }
}
