import { expect, it } from "vitest";
import { seconds } from "../../../src/core/time/time.ts";
import { CredentialCache, type KubeCredentials } from "../../../src/kube/access/kube-access.ts";
import { HttpKubeApi } from "../../../src/kube/http/http-api.ts";
import { ManualClock } from "../../support/manual-clock.ts";

/** Credentials that arrive when the test says so, as those of an exec plugin. */
function setUp() {
  const clock = new ManualClock();
  const started: PromiseWithResolvers<KubeCredentials>[] = [];
  const credentials = () => {
    const plugin = Promise.withResolvers<KubeCredentials>();
    started.push(plugin);
    return plugin.promise;
  };
  const server = "https://127.0.0.1:1";
  const access = { server, namespace: undefined, credentials, reload: async () => {} };
  const finish = (at: number) => started[at]?.resolve({ headers: { at: String(at) }, tls: {} });
  return { clock, access, started, finish, cache: new CredentialCache(access, clock) };
}

it("a plugin that hangs is not started again for a minute, and its late credentials are kept for 10 s", async () => {
  const { clock, started, finish, cache } = setUp();
  const asked = [cache.get()];
  for (let turn = 0; turn < 4; turn += 1) {
    await clock.advance(10_000);
    asked.push(cache.get());
  }
  expect(started).toHaveLength(1);
  finish(0);
  const [first, ...others] = await Promise.all(asked);
  for (const other of others) expect(other).toBe(first);
  await clock.advance(9_999);
  expect(await cache.get()).toBe(first);
  await clock.advance(1);
  const next = cache.get();
  finish(1);
  expect(await next).not.toBe(first);
});

it("a plugin that hangs for a minute gets a successor, whose credentials apply", async () => {
  const { clock, started, finish, cache } = setUp();
  void cache.get();
  await clock.advance(59_999);
  void cache.get();
  expect(started).toHaveLength(1);
  await clock.advance(1);
  const next = cache.get();
  expect(started).toHaveLength(2);
  finish(1);
  expect((await next).headers).toEqual({ at: "1" });
});

it("each request that waits for a plugin that hangs has its own timeout", async () => {
  const { clock, access, started } = setUp();
  const api = new HttpKubeApi({ access, clock, requestTimeoutMs: seconds(5) });
  for (let turn = 0; turn < 4; turn += 1) {
    const sent = api.send({ method: "GET", path: "/api/v1/nodes" });
    const failed = expect(sent).rejects.toMatchObject({ code: "API_UNREACHABLE" });
    await clock.advance(5_000);
    await failed;
  }
  expect(started).toHaveLength(1);
  api.close();
});

it("a plugin that fails is started again by the next request", async () => {
  const { started, finish, cache } = setUp();
  const failed = expect(cache.get()).rejects.toThrow("log in");
  started[0]?.reject(new Error("log in"));
  await failed;
  const next = cache.get();
  finish(1);
  expect((await next).headers).toEqual({ at: "1" });
});

it("requests that are refused at the same time start the plugin once", async () => {
  const { started, finish, cache } = setUp();
  const first = cache.get();
  finish(0);
  const refused = await first;
  const renewals = [cache.renew(refused), cache.renew(refused)];
  await new Promise((resolve) => setImmediate(resolve));
  expect(started).toHaveLength(2);
  finish(1);
  const [one, other] = await Promise.all(renewals);
  expect(one).not.toBe(refused);
  expect(other).toBe(one);
});
