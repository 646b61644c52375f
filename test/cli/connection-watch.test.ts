import { afterEach, beforeEach, expect, it } from "vitest";
import { ConnectionWatch } from "../../src/cli/board/connection-watch.ts";
import type { KubeAnswer, KubeRequest, KubeSender } from "../../src/contracts/kube-api.ts";
import { millis, minus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { deadWatchError } from "../../src/kube/http/http-connection.ts";
import { ManualClock } from "../support/manual-clock.ts";

let stop: AbortController;
beforeEach(() => {
  stop = new AbortController();
});
afterEach(() => stop.abort());

/** A server that answers, hangs until the request's own timeout, or refuses. */
async function watched() {
  const clock = new ManualClock();
  const server = { state: "Answers" as "Answers" | "Hangs", status: 200 };
  const api: KubeSender = {
    send: async ({ timeoutMs = millis(30_000) }: KubeRequest): Promise<KubeAnswer> => {
      const isOver = () => server.state === "Answers";
      for (let waitedMs = 0; !isOver(); waitedMs += 100) {
        if (waitedMs >= timeoutMs) throw new LastcallError("API_UNREACHABLE", "no answer");
        await clock.sleep(millis(100));
      }
      return { status: server.status, body: {} };
    },
  };
  const watch = new ConnectionWatch({ api, clock, onChange: () => {} });
  const silences = () => [{ kind: "nodes", ms: seconds(600) }] as const;
  const fleet = { synced: async () => {}, silences };
  void watch.run(fleet, async () => {}, stop.signal);
  await clock.advance(100);
  return { clock, server, watch };
}

it("a server that hangs is away since its last answer, and back within 2 s of the next", async () => {
  const { clock, server, watch } = await watched();
  expect(watch.state()).toEqual({ kind: "Live" });
  server.state = "Hangs";
  const silentAt = clock.now();
  watch.onSilent(seconds(2));
  expect(watch.state()).toMatchObject({ kind: "Away", sinceAt: minus(silentAt, seconds(2)) });
  // It stays away for as long as the server hangs, and does not flicker.
  for (let second = 0; second < 60; second += 1) {
    await clock.advance(1000);
    expect(watch.state()).toMatchObject({ kind: "Away", sinceAt: minus(silentAt, seconds(2)) });
  }
  server.state = "Answers";
  await clock.advance(2000);
  expect(watch.state()).toEqual({ kind: "Live" });
});

it("a server that refuses the probe has responded, one that is overloaded has not", async () => {
  const { clock, server, watch } = await watched();
  server.state = "Hangs";
  watch.onSilent(seconds(2));
  await clock.advance(5000);
  Object.assign(server, { state: "Answers", status: 503 });
  await clock.advance(3000);
  expect(watch.state()).toMatchObject({
    ...{ kind: "Away", problem: "Cannot get /version: the API server answered 503" },
  });
  server.status = 403;
  await clock.advance(2000);
  expect(watch.state()).toEqual({ kind: "Live" });
});

it("one of several problems at once is told for five seconds, and not all of them in turn", async () => {
  const { clock, watch } = await watched();
  const told = new Set<string>();
  for (let time = 0; time < 45; time += 1) {
    const kind = ["nodes", "departures", "policies"][time % 3];
    watch.onError(new LastcallError("API_UNREACHABLE", `Cannot watch ${kind}`));
    await clock.advance(100);
    told.add(JSON.stringify(watch.state()));
  }
  expect(told.size).toBe(1);
  await clock.advance(500);
  watch.onError(new LastcallError("API_UNREACHABLE", "Cannot list nodes"));
  expect(watch.state()).toMatchObject({ kind: "Away", problem: "Cannot list nodes" });
});

it("after a watch has failed once, the cluster is back as soon as the next try must have failed", async () => {
  const { clock, watch } = await watched();
  watch.onError(new LastcallError("API_UNREACHABLE", "refused"));
  expect(watch.state()).toMatchObject({ kind: "Away", problem: "refused" });
  await clock.advance(2000);
  expect(watch.state()).toEqual({ kind: "Live" });
  for (let time = 0; time < 10; time += 1) watch.onError(new LastcallError("API_UNREACHABLE", "x"));
  await clock.advance(2000);
  expect(watch.state()).toMatchObject({ kind: "Away" });
  await clock.advance(2000);
  expect(watch.state()).toEqual({ kind: "Live" });
});

it("watches that are reopened because a new connection has answered are no outage", async () => {
  const { watch } = await watched();
  const dead = { found: "Silent", silentMs: seconds(2) } as const;
  watch.onError(deadWatchError("https://10.0.0.1", dead));
  expect(watch.state()).toEqual({ kind: "Live" });
});
