import { seededRng } from "../../src/core/chance/chance.ts";
import { instant } from "../../src/core/time/time.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { ModelApi } from "../../src/sim/api/model-api.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { kubeApiContract } from "./kube-api.contract.ts";

kubeApiContract("ModelApi", async () => {
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
});
