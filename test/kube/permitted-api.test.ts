import { expect, it } from "vitest";
import type { KubeAnswer, KubeApi, KubeWatchEvent } from "../../src/contracts/kube-api.ts";
import { PermittedApi } from "../../src/kube/watch/collection.ts";
import { ManualClock } from "../support/manual-clock.ts";

const path = "/apis/lastcall.dev/v1alpha1/departures";
const status = (code: number, reason: string, message: string): KubeAnswer => ({
  status: code,
  body: { kind: "Status", code, reason, message },
});
const forbidden = status(403, "Forbidden", 'departures is forbidden: User "eve" cannot list');

function apiThat(answers: readonly KubeAnswer[], events: readonly KubeWatchEvent[] = []): KubeApi {
  const left = [...answers];
  return {
    send: async () => left.shift() ?? { status: 200, body: { items: [] } },
    watch: async function* () {
      yield* events;
    },
  };
}

function permitted(api: KubeApi) {
  let told = 0;
  const clock = new ManualClock();
  const onMissing = (): void => {
    told += 1;
  };
  return { clock, told: () => told, seen: new PermittedApi({ api, clock, onMissing }) };
}

it("shows a collection as empty if it may not be listed, and reports it as missing", async () => {
  const { seen, told } = permitted(apiThat([forbidden]));
  const answer = await seen.send({ method: "GET", path });
  expect(answer).toMatchObject({ status: 200, body: { items: [] } });
  expect(seen.missing()).toEqual([expect.stringContaining("departures")]);
  expect(told()).toBe(1);
});

it("no longer reports it once it can be listed", async () => {
  const { seen, told } = permitted(apiThat([forbidden]));
  await seen.send({ method: "GET", path });
  await seen.send({ method: "GET", path });
  expect(seen.missing()).toEqual([]);
  expect(told()).toBe(2);
});

it("passes the response to a write on unchanged", async () => {
  const { seen } = permitted(apiThat([forbidden]));
  const answer = await seen.send({ method: "POST", path, body: {} });
  expect(answer.status).toBe(403);
  expect(seen.missing()).toEqual([]);
});

it("lists a collection again after a while if its watch is refused", async () => {
  const refused = { type: "ERROR", object: forbidden.body } as KubeWatchEvent;
  const { seen, clock } = permitted(apiThat([], [refused]));
  const { signal } = new AbortController();
  const events = seen.watch({ path, signal });
  const next = events.next();
  await clock.advance(20_000);
  expect((await next).value).toMatchObject({ type: "ERROR", object: { code: 410 } });
  expect((await events.next()).done).toBe(true);
  expect(seen.missing()).toHaveLength(1);
});

it("reports a custom resource definition that is not installed", async () => {
  const { seen } = permitted(apiThat([{ status: 404, body: "404 page not found\n" }]));
  expect(await seen.send({ method: "GET", path })).toMatchObject({ status: 200 });
  expect(seen.missing()).toEqual([expect.stringMatching(/departures.*lastcall setup crds/s)]);
});
