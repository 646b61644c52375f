import { loadKubeAccess } from "../../src/kube/access/load-kube-access.ts";
import { HttpKubeApi } from "../../src/kube/http/http-api.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import type { KubeApiTarget } from "../contract/kube-api/target.ts";
import {
  controllerSentences,
  kubeApiContract,
  serverSentences,
} from "../contract/kube-api.contract.ts";
import { startControlPlane } from "../support/control-plane.ts";
import { waitUntil } from "../support/wait-until.ts";

/** The suite binds its pods to nodes that do not exist, so no kubelet touches them. */
kubeApiContract("HttpKubeApi with a real API server", realTarget, [
  ...serverSentences,
  ...controllerSentences,
]);

async function realTarget(): Promise<KubeApiTarget> {
  const plane = await startControlPlane({ withKwok: false });
  const access = await loadKubeAccess({ kubeconfig: plane.kubeconfig, env: {} });
  const api = new HttpKubeApi({ access, clock: realClock });
  const namespace = "contract";
  const body = { metadata: { name: namespace } };
  await api.send({ method: "POST", path: "/api/v1/namespaces", body });
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
  await waitUntil(async () => (await api.send({ method: "GET", path })).status === 200, {
    what: "the namespace takes pods",
    timeoutMs: 60_000,
    signal: plane.signal,
  });
  return {
    api,
    namespace,
    gaps: {
      UnobservedBudget: "the disruption controller runs and observes every budget at once",
      Compaction: "the API server keeps the changes of the last minutes whatever etcd forgets",
    },
    close: async () => {
      api.close();
      await plane.stop();
    },
  };
}
