import { describe, expect, it } from "vitest";
import { Health } from "../../src/controller/plan-reporter.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ModelWorld, spotPolicy } from "../support/model-world.ts";

describe("the health of a controller", () => {
  it("fails when a pass hangs for two minutes, and recovers when the pass ends", async () => {
    const clock = new ManualClock();
    const health = new Health(clock);
    health.passBegan();
    await clock.advance(minutes(2));
    expect(health.problem()).toBeUndefined();
    await clock.advance(1000);
    expect(health.problem()).toMatch(/stuck for 121 s/);
    health.passEnded();
    expect(health.problem()).toBeUndefined();
  });

  it.each([
    ["ends after half a minute, it stays healthy", true],
    ["never ends, it turns unhealthy", false],
  ])("if each write to the API server hangs and %s", async (_, ends) => {
    const world = new ModelWorld();
    for (let node = 0; node < 100; node += 1) world.addNode(`n${node}`, "a");
    spotPolicy(world, { lifetime: { max: "24h", reserve: "30m" } });
    const send = world.api.send.bind(world.api);
    let writes = 0;
    world.api.send = async (request) => {
      if (request.method === "GET") return send(request);
      writes += 1;
      if (!ends) return new Promise(() => {});
      await world.clock.sleep(seconds(30));
      throw new LastcallError("API_UNREACHABLE", "Cannot reach the API server: no answer");
    };
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    const problems = new Set<string | undefined>();
    for (let second = 0; second < 300; second += 1) {
      await world.pass(seconds(1));
      problems.add(world.health?.problem());
    }
    // More than can be in flight at once during the two minutes after which a stuck pass is found.
    expect(writes).toBeGreaterThan(ends ? 64 : 0);
    expect(problems.size > 1).toBe(!ends);
    stop.abort();
    if (ends) await Promise.all([running, world.pass(minutes(2))]);
  });

  it("fails when no pass has started for 15 minutes", async () => {
    const clock = new ManualClock();
    const health = new Health(clock);
    health.passBegan();
    health.passEnded();
    await clock.advance(minutes(15));
    expect(health.problem()).toBeUndefined();
    await clock.advance(1000);
    expect(health.problem()).toMatch(/started no pass for 901 s/);
  });

  it("stays good on a standby, and on a replica that has given up its lead", async () => {
    const clock = new ManualClock();
    const health = new Health(clock);
    await clock.advance(minutes(60));
    expect(health.problem()).toBeUndefined();
    health.passBegan();
    health.stoodDown();
    await clock.advance(minutes(60));
    expect(health.problem()).toBeUndefined();
  });

  it("is good before the watches have synced; readiness follows only after that", () => {
    const health = new Health(new ManualClock());
    expect([health.problem(), health.ready()]).toEqual([undefined, false]);
    health.watchesSynced();
    expect(health.ready()).toBe(true);
  });
});
