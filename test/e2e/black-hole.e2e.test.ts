import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { FaultWorld, type Way } from "./fault-world.ts";

const ways: readonly Way[] = ["Tls", "Http"];
const roundsEach = 2;

let world: FaultWorld;

beforeAll(async () => {
  world = await FaultWorld.start(ways.length * roundsEach);
});

afterAll(() => world?.stop());

describe.each(ways)("a controller by %s whose every open connection dies silently", (way) => {
  afterEach(() => world.stopController());

  test("cordons and evicts within 5 s of a notice at that instant, twice in a row", async () => {
    await world.startController(way);
    for (let round = 1; round <= roundsEach; round += 1) {
      const node = world.takeNode();
      world.blackHole();
      const { cordonMs, firstEvictionMs } = await world.reactionOf(
        node,
        `every open connection dies, by ${way}, time ${round}`,
      );
      expect({ round, cordonMs }).toEqual({ round, cordonMs: expect.toSatisfy(isInTime) });
      expect({ round, firstEvictionMs }).toEqual({
        round,
        firstEvictionMs: expect.toSatisfy(isInTime),
      });
    }
    expect((await world.readiness()).status).toBe(200);
    expect(await world.metrics()).toMatch(/^lastcall_watch_silence_seconds\{kind="departures"\} /m);
  });
});

function isInTime(ms: unknown): boolean {
  return typeof ms === "number" && ms < 5_000;
}
