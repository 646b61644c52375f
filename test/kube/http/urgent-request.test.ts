import { expect, it } from "vitest";
import type { KubeRequest } from "../../../src/contracts/kube-api.ts";
import { HttpKubeApi } from "../../../src/kube/http/http-api.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { json, ScriptedServer } from "../../support/scripted-server.ts";

it("each request of urgency First is reported, and no other", async () => {
  const server = await new ScriptedServer((_, to) => json(to, 200, { kind: "Node" })).start();
  const credentials = async () => ({ headers: {}, tls: {} });
  const access = { server: server.url, namespace: undefined, credentials, reload: async () => {} };
  let reported = 0;
  const onFirst = () => {
    reported += 1;
  };
  const api = new HttpKubeApi({ access, clock: new ManualClock(), onFirst });
  try {
    const get: KubeRequest = { method: "GET", path: "/api/v1/nodes" };
    await api.send(get);
    await api.send({ ...get, urgency: "Later" });
    expect(reported).toBe(0);
    await api.send({ ...get, urgency: "First" });
    expect(reported).toBe(1);
  } finally {
    api.close();
    await server.stop();
  }
});
