import { seededRng } from "../../src/core/chance/chance.ts";
import { instant } from "../../src/core/time/time.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { ModelApi } from "../../src/sim/api/model-api.ts";
import { startControllers } from "../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import type { KubeApiTarget } from "./kube-api/target.ts";
import { controllerSentences, kubeApiContract } from "./kube-api.contract.ts";

kubeApiContract("ModelApi", modelTarget);
kubeApiContract(
  "ModelApi with its controllers",
  async () => {
    const target = await modelTarget();
    startControllers(target.api.context);
    return target;
  },
  controllerSentences,
);

async function modelTarget(): Promise<KubeApiTarget & { readonly api: ModelApi }> {
  const startAt = instant(Date.UTC(2026, 10, 20));
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const api = new ModelApi({ clock, rng: seededRng(1) });
  const namespace = "contract";
  const body = { metadata: { name: namespace } };
  await api.send({ method: "POST", path: "/api/v1/namespaces", body });
  return {
    api,
    namespace,
    gaps: {
      Cel: "the model evaluates no expressions, the CRDs are tried on a real API server",
      FieldOwners: "the model tracks no managed fields, our controllers apply with force",
    },
    compactHistory: () => api.compactHistory(),
    close: () => Promise.resolve(),
  };
}
