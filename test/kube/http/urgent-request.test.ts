import { afterEach, expect, it } from "vitest";
import type { KubeRequest } from "../../../src/contracts/kube-api.ts";
import { instant, plus, seconds } from "../../../src/core/time/time.ts";
import { HttpKubeApi, type HttpKubeApiOptions } from "../../../src/kube/http/http-api.ts";
import { LeaseStore } from "../../../src/kube/lease/lease-store.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { json, type Script, ScriptedServer } from "../../support/scripted-server.ts";
import { waitUntil } from "../../support/wait-until.ts";

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function setUp(script: Script, options: Partial<HttpKubeApiOptions> = {}) {
  const server = await new ScriptedServer(script).start();
  const credentials = async () => ({ headers: {}, tls: {} });
  const access = { server: server.url, namespace: undefined, credentials, reload: async () => {} };
  const clock = new ManualClock();
  const api = new HttpKubeApi({ access, clock, ...options });
  closing.push(
    () => server.stop(),
    () => api.close(),
  );
  const untilSeen = (count: number) =>
    waitUntil(async () => server.seen.length >= count, { what: `${count} sent`, timeoutMs: 5000 });
  return { server, clock, api, untilSeen };
}

const get: KubeRequest = { method: "GET", path: "/api/v1/nodes" };

it("each request of urgency First is reported, and no other", async () => {
  let reported = 0;
  const onFirst = () => {
    reported += 1;
  };
  const { api } = await setUp((_, to) => json(to, 200, { kind: "Node" }), { onFirst });
  for (const urgency of ["Apart", "Now", "Later"] as const) await api.send({ ...get, urgency });
  expect(reported).toBe(0);
  await api.send({ ...get, urgency: "First" });
  expect(reported).toBe(1);
});

it("cordons and the Lease are sent although more evictions hang than there are connections", async () => {
  const { server, clock, api, untilSeen } = await setUp(({ url }, to) => {
    if (url?.endsWith("/eviction") === false) json(to, 404, { kind: "Status" });
  });
  for (let pod = 0; pod < 200; pod += 1) {
    api.send({ method: "POST", path: `/api/v1/pods/${pod}/eviction` }).catch(() => {});
  }
  await untilSeen(56);
  const place = { namespace: "lastcall", name: "lastcall", durationSeconds: 15 };
  const lease = new LeaseStore({ api, clock, ...place });
  expect(await lease.read()).toEqual({ kind: "Absent" });
  const cordon = { method: "PATCH", path: "/api/v1/nodes/n1", urgency: "First" } as const;
  expect(await api.send(cordon)).toMatchObject({ status: 404 });
  expect(server.seen).toHaveLength(58);
});

it("time that a request has waited for others does not count as slowness of the server", async () => {
  const respond: (() => void)[] = [];
  const { clock, api, untilSeen } = await setUp(
    (_, to) => void respond.push(() => json(to, 200, { kind: "Node" })),
    { maxSockets: 1 },
  );
  // One after another, each takes 0.7 s.
  const before = Array.from({ length: 42 }, () => api.send(get));
  const cutOff = expect(api.send(get)).rejects.toThrow("within 30 s");
  for (const [place, one] of before.entries()) {
    await untilSeen(place + 1);
    await clock.advance(700);
    respond[place]?.();
    await one;
  }
  await untilSeen(43);
  await clock.advance(600);
  await cutOff;
  const dueAt = plus(instant(clock.now()), seconds(60));
  const urgent = expect(api.send({ ...get, dueAt })).rejects.toThrow("within 2.5 s");
  await untilSeen(44);
  await clock.advance(2500);
  await urgent;
});
