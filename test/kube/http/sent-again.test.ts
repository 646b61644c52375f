import { expect, it } from "vitest";
import { LastcallError } from "../../../src/errors.ts";
import type { KubeAccess } from "../../../src/kube/access/kube-access.ts";
import { HttpKubeApi } from "../../../src/kube/http/http-api.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { json, ScriptedServer } from "../../support/scripted-server.ts";

it("a request is sent again with new credentials as it is by then, or not at all", async () => {
  const server = await new ScriptedServer((seen, response) =>
    json(response, seen.headers.authorization === "Bearer new" ? 200 : 401, {}),
  ).start();
  const renewing = Promise.withResolvers<void>();
  const renewed = Promise.withResolvers<void>();
  let token = "old";
  const access: KubeAccess = {
    server: server.url,
    namespace: undefined,
    credentials: async () => ({ headers: { authorization: `Bearer ${token}` }, tls: {} }),
    // As a plugin that takes its time.
    async reload() {
      renewing.resolve();
      await renewed.promise;
      token = "new";
    },
  };
  const api = new HttpKubeApi({ access, clock: new ManualClock() });
  let leftSeconds = 20;
  const post = { method: "POST", path: "/grace" } as const;
  const grace = api.send({ ...post, bodyAtTurn: () => ({ leftSeconds }) });
  const late = api.send({
    ...{ ...post, path: "/late" },
    bodyAtTurn: () => {
      if (leftSeconds < 20) throw new LastcallError("LEASE_LOST", "Cannot act");
      return {};
    },
  });
  const ends = Promise.allSettled([grace, late]);
  await renewing.promise;
  leftSeconds = 5;
  renewed.resolve();
  expect(await ends).toMatchObject([
    { value: { status: 200 } },
    { reason: { code: "LEASE_LOST" } },
  ]);
  const bodiesTo = (path: string) =>
    server.seen.filter(({ url }) => url === path).map(({ body }) => body);
  expect(bodiesTo("/grace")).toEqual(['{"leftSeconds":20}', '{"leftSeconds":5}']);
  expect(bodiesTo("/late")).toEqual(["{}"]);
  api.close();
  await server.stop();
});
