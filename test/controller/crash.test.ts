import { describe, expect, it } from "vitest";
import { hours, type Millis, minutes, seconds } from "../../src/core/time/time.ts";
import { isLongRun } from "../support/long-run.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

const names = ["n0", "n1", "n2"];

function fleet(): ModelWorld {
  const world = new ModelWorld();
  for (const [index, name] of names.entries()) world.addNode(name, "abc"[index] as string);
  webWorkload(world, { replicas: 4, maxUnavailable: 2 });
  spotPolicy(world, { lifetime: { max: "2h", reserve: "30m" } });
  return world;
}

interface Fate {
  /** The controller dies before this write. */
  readonly dieAt: number;
  /** How long there is no leader after that. */
  readonly leaderlessMs: Millis;
}

/** Runs a controller that dies; a new one starts later. */
async function runWithDeath({
  dieAt,
  leaderlessMs,
}: Fate): Promise<{ world: ModelWorld; died: string; writes: number }> {
  const world = fleet();
  const first = new AbortController();
  let died = "";
  let writes = 0;
  world.beforeWrite = (request) => {
    writes += 1;
    if (died !== "") throw new Error("a dead process writes nothing");
    if (writes !== dieAt) return;
    died = `${request.method} ${request.path}`;
    first.abort(new Error("killed"));
    throw new Error("killed");
  };
  const running = world.startController(first.signal);
  const until = world.clock.now() + hours(2);
  while (died === "" && world.clock.now() < until) await world.pass(seconds(10));
  first.abort();
  await running;
  world.beforeWrite = () => {};
  const writesOfTheFirst = world.writes.length;
  await world.pass(leaderlessMs);
  const second = new AbortController();
  const again = world.startController(second.signal);
  await world.pass(hours(3));
  second.abort();
  await again;
  return { world, died, writes: writesOfTheFirst };
}

/** Unless this is a long run, each has every second write, so that both together have every one. */
describe.each([
  { who: "the next leader is quicker than the group", leaderlessMs: seconds(0), from: 1 },
  {
    who: "the group has created the new machine before anybody leads",
    ...{ leaderlessMs: minutes(2), from: 2 },
  },
])("a controller that is killed before any of its writes, when $who", async (one) => {
  const { leaderlessMs, from } = one;
  const { writes: total } = await runWithDeath({
    dieAt: Number.POSITIVE_INFINITY,
    leaderlessMs,
  });

  const writes = Array.from({ length: total }, (_, index) => index + 1);

  it.each(isLongRun ? writes : writes.filter((write) => write % 2 === from % 2))(
    "is succeeded by one that completes its work (write %i)",
    async (dieAt) => {
      const { world, died } = await runWithDeath({ dieAt, leaderlessMs });
      expect(died).not.toBe("");
      // No node stays cordoned without a live departure that explains it.
      for (const node of world.list(nodes)) {
        const name = node.metadata?.name ?? "";
        if (world.marksOf(name).length === 0) continue;
        const owner = node.metadata?.annotations?.["lastcall.dev/departure"];
        const status = world.get(`${departures}/${owner}`)?.status as { phase: string } | undefined;
        expect(["Preparing", "Draining", "Releasing", "RollingBack"]).toContain(status?.phase);
      }
      // Each machine was released once.
      expect(new Set(world.releaseIds).size).toBe(world.releaseIds.length);
      // Each of the first nodes has left as planned, and all of its pods were evicted.
      for (const uid of world.firstUids) {
        const ended = world
          .list(departures)
          .filter((one) => (one.spec as { node: { uid: string } }).node.uid === uid)
          .map((one) => one.status as { outcome?: string; startedAt?: string; endedAt?: string })
          .toSorted((a, b) => Date.parse(a.endedAt ?? "") - Date.parse(b.endedAt ?? ""));
        expect(new Set(ended.map(({ outcome }) => outcome))).toEqual(new Set(["Planned"]));
        // A machine that has taken over the Node object leaves on its own schedule, at least an
        // hour later.
        const [first, second] = ended;
        const stayedMs = Date.parse(second?.startedAt ?? "") - Date.parse(first?.endedAt ?? "");
        if (second !== undefined) expect(stayedMs).toBeGreaterThanOrEqual(hours(1));
        expect(ended.length).toBeLessThanOrEqual(2);
      }
    },
  );
});
