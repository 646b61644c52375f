import { join } from "node:path";
import { loadKubeAccess } from "../../src/kube/access/load-kube-access.ts";
import { HttpKubeApi } from "../../src/kube/http/http-api.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { boardContract } from "../contract/board.contract.ts";
import { startControlPlane } from "../support/control-plane.ts";
import { waitUntil } from "../support/wait-until.ts";
import { mustRun } from "./must-run.ts";

const departures = "/apis/lastcall.dev/v1alpha1/departures";

boardContract("a real API server", async () => {
  const plane = await startControlPlane({ withScheduler: false, withKwok: false });
  await mustRun(plane, ["apply", "-k", join(import.meta.dirname, "../../deploy/crds")]);
  const access = await loadKubeAccess({ kubeconfig: plane.kubeconfig, env: {} });
  const api = new HttpKubeApi({ access, clock: realClock });
  const isServed = async () => (await plane.request({ path: departures })).status === 200;
  const { signal } = plane;
  await waitUntil(isServed, { what: "departures are served", timeoutMs: 60_000, signal });
  return {
    api,
    close: async () => {
      api.close();
      await plane.stop();
    },
  };
});
