import type { MachineAddresses } from "../../contracts/action-runner.ts";
import type { KubeApi } from "../../contracts/kube-api.ts";
import { fieldsOf, listOf, textOf } from "../../core/json/json-field.ts";
import { LastcallError } from "../../errors.ts";
import { apiError } from "../object/api-error.ts";
import { podsPath } from "../object/paths.ts";

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
