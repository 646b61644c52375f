import { describe, expect, it } from "vitest";
import { ClusterClock } from "../../src/cli/cluster/connect.ts";
import type { KubeAnswer } from "../../src/contracts/kube-api.ts";
import {
  formatInstant,
  hours,
  type Instant,
  type Millis,
  millis,
  minus,
  minutes,
  plus,
  seconds,
} from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ManualClock } from "../support/manual-clock.ts";

const signal = new AbortController().signal;

/** A server that gives this answer, and the paths that were requested. */
function serverOf(answer: () => KubeAnswer) {
  const asked: string[] = [];
  const api = {
    send: async ({ path }: { readonly path: string }) => {
      asked.push(path);
      return answer();
    },
  };
  return { api, asked };
}

const version = (serverAt?: Instant): KubeAnswer => ({
  ...{ status: 200, body: { gitVersion: "v1.36.0" } },
  ...(serverAt && { serverAt }),
});

describe("The time of a cluster", () => {
  it.each([
    ["no time", undefined],
    ["about the same", 4_000],
  ])("is this computer's time if the server reports %s", async (_, offMs) => {
    const clock = new ManualClock();
    const { api } = serverOf(() =>
      version(offMs === undefined ? undefined : plus(clock.now(), millis(offMs))),
    );
    const cluster = new ClusterClock(api, clock);
    await cluster.find(signal);
    expect(cluster.now()).toBe(clock.now());
  });

  it.each<[string, Millis]>([
    ["hours behind", hours(3)],
    ["hours ahead", millis(-hours(5))],
    ["half a minute behind", seconds(30)],
  ])("is the server's time if this computer's clock is %s", async (_, offMs) => {
    const clock = new ManualClock();
    const { api } = serverOf(() => version(plus(clock.now(), offMs)));
    const cluster = new ClusterClock(api, clock);
    await cluster.find(signal);
    expect(cluster.now()).toBe(plus(clock.now(), offMs));
    await clock.advance(seconds(90));
    expect(cluster.now()).toBe(plus(clock.now(), offMs));
    expect(cluster.rate()).toBe(1);
  });

  it("is read again only on demand, without polling", async () => {
    const clock = new ManualClock();
    let offMs: number = hours(3);
    const { api, asked } = serverOf(() => version(plus(clock.now(), millis(offMs))));
    const cluster = new ClusterClock(api, clock);
    await cluster.find(signal);
    await cluster.run(() => {}, signal);
    expect(asked).toEqual(["/version"]);
    // This computer's clock has been corrected.
    offMs = 0;
    await cluster.find(signal);
    expect(cluster.now()).toBe(clock.now());
  });

  it("keeps its offset if the server stops responding", async () => {
    const clock = new ManualClock();
    let isAway = false;
    const { api } = serverOf(() => {
      if (isAway) throw new LastcallError("API_UNREACHABLE", "Cannot GET /version: refused");
      return version(minus(clock.now(), hours(2)));
    });
    const cluster = new ClusterClock(api, clock);
    await cluster.find(signal);
    isAway = true;
    await clock.advance(seconds(5));
    await cluster.find(signal);
    expect(cluster.now()).toBe(minus(clock.now(), hours(2)));
    expect(cluster.rate()).toBe(1);
  });

  it("is a demo's own time, whatever the server's clock says, and is polled", async () => {
    const clock = new ManualClock();
    const at = minus(clock.now(), hours(30));
    let rate = 60;
    const { api, asked } = serverOf(() => ({
      ...version(clock.now()),
      body: { modelClock: { at: formatInstant(at), rate } },
    }));
    const cluster = new ClusterClock(api, clock);
    await cluster.find(signal);
    expect([cluster.now(), cluster.rate()]).toEqual([at, 60]);
    const over = new AbortController();
    let changes = 0;
    const running = cluster.run(() => {
      changes += 1;
    }, over.signal);
    rate = 0;
    await clock.advance(seconds(1));
    expect([cluster.rate(), changes]).toEqual([0, 1]);
    expect(asked.length).toBeGreaterThan(1);
    over.abort();
    await running;
  });

  it("ends a sleep at its instant while a demo is paused and sped up", async () => {
    const clock = new ManualClock();
    const at = minus(clock.now(), hours(30));
    let modelClock = { at: formatInstant(at), rate: 60 };
    const { api } = serverOf(() => ({ status: 200, body: { modelClock } }));
    const cluster = new ClusterClock(api, clock);
    await cluster.find(signal);
    let isAwake = false;
    const sleeping = cluster.sleepUntil(plus(at, minutes(10))).then(() => {
      isAwake = true;
    });
    await clock.advance(seconds(5));
    modelClock = { at: formatInstant(plus(at, minutes(5))), rate: 0 };
    await cluster.find(signal);
    await clock.advance(minutes(30));
    expect(isAwake).toBe(false);
    modelClock = { ...modelClock, rate: 600 };
    await cluster.find(signal);
    await clock.advance(seconds(1));
    await sleeping;
    expect(cluster.now()).toBeGreaterThanOrEqual(plus(at, minutes(10)));
  });

  it("leaves sleeping to this computer's clock if that needs no correction", async () => {
    const until: Instant[] = [];
    class WatchedClock extends ManualClock {
      override async sleepUntil(at: Instant): Promise<void> {
        until.push(at);
      }
    }
    const clock = new WatchedClock();
    const at = plus(clock.now(), minutes(1));
    await new ClusterClock(serverOf(() => version()).api, clock).sleepUntil(at);
    expect(until).toEqual([at]);
  });
});
