import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ComputeClient } from "../../../src/cloud/gcp/compute-client.ts";
import { ComputeLaunchTimes } from "../../../src/cloud/gcp/compute-engine.ts";
import { noTokens } from "../../../src/cloud/release/rest-exchange.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { hours, instant, plus } from "../../../src/core/time/time.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";
import { launchTimesContract } from "../../contract/launch-times.contract.ts";
import { computeTime } from "../../support/compute-body.ts";
import { type ComputeWorld, startComputeWorld, zone } from "../../support/compute-world.ts";
import { foreignText } from "../../support/foreign-text.ts";

launchTimesContract("ComputeLaunchTimes", startComputeWorld);

const never = new AbortController().signal;

describe("launch times of Compute Engine machines", () => {
  let world: ComputeWorld;
  beforeEach(async () => {
    world = await startComputeWorld();
  });
  afterEach(() => world.close());

  function read(providerIDs: readonly string[]) {
    return world.pass(world.launchTimes.launchTimesOf(providerIDs, never));
  }

  function machines(count: number): readonly string[] {
    return Array.from({ length: count }, (_, index) => world.addMachine(`n${index}`).providerID);
  }

  it("of a thousand nodes take two list requests", async () => {
    const providerIDs = machines(1_000);
    expect((await read(providerIDs)).bornAt.size).toBe(1_000);
    expect(world.server.log.map(({ method, path }) => `${method} ${path}`)).toEqual(
      Array(2).fill(`GET /zones/${zone}/instances`),
    );
    expect([...world.server.permissionsUsed]).toEqual(["compute.instances.list"]);
  });

  it("of a few nodes are requested without the other machines in their zone", async () => {
    const [first = "", second = ""] = machines(700);
    expect([...(await read([first, second])).bornAt.keys()]).toEqual([first, second]);
    expect(world.server.log).toHaveLength(1);
    expect(world.server.log[0]?.query.filter).toBe('(name = "n0") OR (name = "n1")');
  });

  it("are returned for one zone even if another zone's list fails", async () => {
    const [here = ""] = machines(1);
    const there = "gce://project1/us-central1-f/n1";
    const refusal = { kind: "Refuse", status: 403, reason: "forbidden" } as const;
    world.server.failNext(refusal, { match: /us-central1-f/, times: 9 });
    const told = await read([here, there]);
    expect([...told.bornAt.keys()]).toEqual([here]);
    expect(told.faults.map(({ message }) => message)).toEqual([
      "Cannot list the instances of project1/us-central1-f: Compute Engine answered 403 forbidden (Refused for the test: forbidden), expected the permission compute.instances.list",
    ]);
  });

  it("start over with a stop and a start, as the 24-hour limit does", async () => {
    const machine = world.server.model.addMachine({ name: "n1", zone, group: world.group });
    machine.startedAt = plus(machine.createdAt, hours(5));
    const told = await read([`gce://project1/${zone}/n1`]);
    expect([...told.bornAt.values()]).toEqual([machine.startedAt]);
  });

  it("are not requested for an invalid machine name", async () => {
    const told = await read([`gce://project1/${zone}/n1") OR (name = "n2`, "gce://p/z/../x"]);
    expect(told).toEqual({ bornAt: new Map(), faults: [] });
    expect(world.server.log).toEqual([]);
  });
});

it("any response yields launch times of the requested machine only, or a fault", async () => {
  const at = instant(Date.UTC(2026, 10, 20));
  const good = JSON.stringify({
    items: [
      { name: "n1", creationTimestamp: computeTime(at), lastStartTimestamp: computeTime(at) },
      { name: "n2", creationTimestamp: computeTime(at) },
    ],
    nextPageToken: "again",
  });
  await fc.assert(
    fc.asyncProperty(foreignText([good]), async (text) => {
      const clock = new VirtualClock({ startAt: at, settle: async () => {} });
      let pages = 0;
      const send = async () => {
        pages += 1;
        return new Response(text);
      };
      const endpoint = { baseUrl: "http://127.0.0.1:1", loopback: true };
      const options = { endpoint, tokens: noTokens, clock, rng: seededRng(1), fetch: send };
      const client = new ComputeClient(options as never);
      const launchTimes = new ComputeLaunchTimes(client);
      const work = launchTimes.launchTimesOf(["gce://p/z/n1"], never);
      let told: Awaited<typeof work> | undefined;
      void work.then((answer) => {
        told = answer;
      });
      for (let turn = 0; told === undefined && turn < 5_000; turn++) {
        await clock.advance(hours(0));
        const dueAt = clock.nextDueAt();
        if (dueAt !== undefined) await clock.runUntil(dueAt);
      }
      expect(pages).toBeLessThanOrEqual(100);
      for (const providerID of told?.bornAt.keys() ?? ["never"])
        expect(providerID).toBe("gce://p/z/n1");
      for (const bornAt of told?.bornAt.values() ?? []) expect(Number.isFinite(bornAt)).toBe(true);
    }),
    { seed: 7, numRuns: 150 },
  );
});
