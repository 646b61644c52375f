import { describe, expect, it } from "vitest";
import { formatInstant, hours, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { stage } from "../support/feed-stage.ts";
import { departures, ModelWorld, nodes, spotPolicy } from "../support/model-world.ts";

function uidOf(world: ModelWorld, node: string): string {
  return world.get(`${nodes}/${node}`)?.metadata?.uid ?? "";
}

function nameOf(world: ModelWorld, node: string): string {
  return `${node}-${uidOf(world, node).slice(0, 8)}`;
}

/** A live departure of n0 under the name that the naming rule gives to that of `node`. */
function takeNameOf(world: ModelWorld, node: string): void {
  const name = nameOf(world, node);
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name },
    spec: {
      node: { name: "n0", uid: uidOf(world, "n0") },
      cause: "Manual",
      departAt: formatInstant(plus(world.clock.now(), hours(100))),
    },
  });
}

function namesFor(world: ModelWorld, node: string): readonly (string | undefined)[] {
  return world
    .list(departures)
    .filter(({ spec }) => (spec as { node: { name: string } }).node.name === node)
    .map(({ metadata }) => metadata?.name);
}

describe("a node whose departure's name is taken by another node", () => {
  it("is planned under the next name, with one warning in the log", async () => {
    const world = new ModelWorld();
    for (const name of ["n0", "n1"]) world.addNode(name, "a");
    takeNameOf(world, "n1");
    spotPolicy(world, { lifetime: { max: "24h", reserve: "30m" } });
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    await world.pass(minutes(1));
    expect(namesFor(world, "n1")).toEqual([`${nameOf(world, "n1")}-2`]);
    const warnings = world.logged.filter((line) => line.includes("departure-name-taken"));
    expect(warnings).toHaveLength(1);
    stop.abort();
    await running;
  });

  it("is cordoned at its notice, and again at the next one", async () => {
    const { world, word, tell, stop } = await stage();
    takeNameOf(world, "n1");
    await world.pass(seconds(1));
    const told = word("n1", { cause: "ScheduledMaintenance" });
    expect(await tell(told)).toBe("Taken");
    expect(world.marksOf("n1")).toContain("unschedulable");
    const { notice, machine } = told;
    expect(await tell({ machine, notice: { ...notice, withdrawn: true } })).toBe("Taken");
    await world.pass(minutes(1));
    expect(world.marksOf("n1")).toEqual([]);
    expect(await tell(word("n1", { eventId: "event-2" }))).toBe("Taken");
    expect(world.marksOf("n1")).toContain("unschedulable");
    const first = nameOf(world, "n1");
    expect(namesFor(world, "n1")).toEqual([`${first}-2`, `${first}-3`]);
    await stop();
  });
});
