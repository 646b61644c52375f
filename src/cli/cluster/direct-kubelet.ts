import type { Clock } from "../../contracts/clock.ts";
import { type Fields, fieldsOf, listOf, textOf, valueAt } from "../../core/json/json-field.ts";
import { seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { type KubeAccess, kubeletAccess } from "../../kube/access/kube-access.ts";
import { HttpKubeApi } from "../../kube/http/http-api.ts";
import { type AskKubelet, nodeNameOf } from "./read-cluster.ts";

/**
 * Asks the kubelet through the node's own port. Needs only `get` on nodes/configz (before
 * Kubernetes 1.33 on nodes/proxy), and a route from here to the nodes.
 */
export function directKubelet(
  access: KubeAccess,
  options: {
    readonly certificate: "Verified" | "Unverified";
    readonly clock: Clock;
    readonly port?: number;
  },
): AskKubelet {
  return async (node, signal) => {
    const address = addressOf(node);
    if (address === undefined) {
      throw new LastcallError(
        "API_UNREACHABLE",
        `Cannot ask the kubelet of ${nodeNameOf(node)}: its Node has no InternalIP address, use --ask-kubelets=proxy`,
      );
    }
    const api = new HttpKubeApi({
      access: kubeletAccess(access, { address, ...options }),
      clock: options.clock,
      requestTimeoutMs: seconds(5),
      maxSockets: 1,
    });
    try {
      return await api.send({ method: "GET", path: "/configz", signal });
    } finally {
      api.close();
    }
  };
}

/** The address inside the cluster's network, or a name of the node if it has none. */
function addressOf(node: Fields): string | undefined {
  const addresses = listOf(valueAt(node, ["status", "addresses"])).map(fieldsOf);
  const ofType = (type: string) => textOf(addresses.find((one) => one.type === type)?.address);
  return ofType("InternalIP") ?? ofType("InternalDNS") ?? ofType("Hostname");
}
