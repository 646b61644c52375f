import type { Pod } from "kubernetes-types/core/v1.js";
import type { ControlPlane } from "./control-plane.ts";

const agentPods =
  "/api/v1/namespaces/lastcall/pods?labelSelector=app.kubernetes.io/component%3Dagent";

/** The agent pods that the DaemonSet has created. */
export async function agentPodsOf(plane: ControlPlane): Promise<readonly Pod[]> {
  const { body } = await plane.request({ path: agentPods });
  return (body.items as Pod[]).filter((pod) => pod.spec?.nodeName !== undefined);
}

/** A token like the one that a node's kubelet gets for the agent pod on that node. */
export async function agentTokenOn(plane: ControlPlane, nodeName: string): Promise<string> {
  const pod = (await agentPodsOf(plane)).find((one) => one.spec?.nodeName === nodeName);
  const { name, uid } = pod?.metadata ?? {};
  const boundObjectRef = { apiVersion: "v1", kind: "Pod", name, uid };
  const { status, body } = await plane.request({
    method: "POST",
    path: "/api/v1/namespaces/lastcall/serviceaccounts/lastcall-agent/token",
    body: {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { boundObjectRef, expirationSeconds: 3607 },
    },
  });
  if (status === 201) return String(body.status.token);
  throw new Error(`Cannot get the agent's token on ${nodeName}: ${status}, expected 201`);
}
