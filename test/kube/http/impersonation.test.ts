import { expect, it } from "vitest";
import { HttpKubeApi } from "../../../src/kube/http/http-api.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { json, ScriptedServer } from "../../support/scripted-server.ts";

it("a request acts as another user, with exactly its groups and extra fields", async () => {
  const server = await new ScriptedServer((_, response) => json(response, 200, {})).start();
  const credentials = async () => ({ headers: {}, tls: {} });
  const access = {
    server: server.url,
    namespace: "default",
    credentials,
    reload: async () => undefined,
  };
  const api = new HttpKubeApi({ access, clock: new ManualClock() });
  const as = {
    user: "system:serviceaccount:ops:x",
    groups: ["system:serviceaccounts", "system:authenticated"],
    extra: { "authentication.kubernetes.io/node-name": "n1" },
  };
  await api.send({ method: "GET", path: "/api/v1/nodes", as });
  api.close();
  await server.stop();
  const headers = Object.entries(server.seen[0]?.headers ?? {});
  expect(headers.filter(([name]) => name.startsWith("impersonate"))).toEqual([
    ["impersonate-user", "system:serviceaccount:ops:x"],
    ["impersonate-group", "system:serviceaccounts, system:authenticated"],
    ["impersonate-extra-authentication.kubernetes.io%2fnode-name", "n1"],
  ]);
});
