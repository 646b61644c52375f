import type { MachineAddresses, SecretReader } from "../contracts/action-runner.ts";
import type { KubeApi } from "../contracts/kube-api.ts";
import { fieldsOf, listOf, textOf } from "../core/json/json-field.ts";
import type { SecretRef } from "../core/policy/action.ts";
import { LastcallError } from "../errors.ts";
import { apiError, podsPath } from "./object/api-call.ts";

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
      throw new LastcallError(
        "SECRET_MISSING",
        `${what}: there is no such Secret, create it, or choose another namespace with -n`,
      );
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

/** The addresses of a node, and of the pods on it that do not share its own. */
export async function machineAddresses(
  api: KubeApi,
  node: string,
  signal: AbortSignal,
): Promise<MachineAddresses> {
  const asked = { method: "GET", path: `/api/v1/nodes/${node}`, signal } as const;
  const query = { fieldSelector: `spec.nodeName=${node}` };
  const list = { method: "GET", path: podsPath, query, signal } as const;
  const [found, pods] = await Promise.all([api.send(asked), api.send(list)]);
  if (found.status === 404) {
    throw new LastcallError(
      "ACTION_TARGET_UNKNOWN",
      `Cannot find the addresses of ${node}: it is gone`,
    );
  }
  if (found.status >= 300) throw apiError(asked, found);
  if (pods.status >= 300) throw apiError(list, pods);
  const addresses = listOf(fieldsOf(fieldsOf(found.body).status).addresses).map(fieldsOf);
  const own = addresses.flatMap(({ type, address }) =>
    type === "InternalIP" || type === "ExternalIP" ? (textOf(address) ?? []) : [],
  );
  const ofPods = listOf(fieldsOf(pods.body).items).flatMap((pod) => {
    const { spec, status } = fieldsOf(pod);
    if (fieldsOf(spec).hostNetwork === true) return [];
    return listOf(fieldsOf(status).podIPs).flatMap((one) => textOf(fieldsOf(one).ip) ?? []);
  });
  return { node: own, pods: [...new Set(ofPods)] };
}
