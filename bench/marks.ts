/**
 * What a burst of marks on Nodes costs the controller as the fleet grows: 300 kubelets report at
 * once that they shut down, in model fleets of 1,000 and of 15,000 nodes; measured until all 300
 * are cordoned. The figure is processor time, since the model's clock stands still meanwhile.
 */
import { millis, minutes } from "../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy } from "../test/support/model-world.ts";
import { type Figure, writeResult } from "./result-file.ts";

const marked = 300;
const fleets = [1000, 15_000] as const;
/** With fifteen times the nodes, the cost may grow at most by this factor. */
const growthGoal = 2;

const shuttingDown = { type: "Ready", status: "False", message: "node is shutting down" };

async function cordonsMs(size: number): Promise<number> {
  const world = new ModelWorld();
  for (let at = 0; at < size; at += 1) world.addNode(`n${at}`, "abc"[at % 3] as string);
  spotPolicy(world, { lifetime: { max: "24h", reserve: "30m" }, spacing: { min: "1s" } });
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(minutes(2));
  const names = Array.from({ length: marked }, (_, at) => `n${at}`);
  const before = process.cpuUsage();
  for (const name of names) {
    world.api.handle({
      ...{ method: "PATCH", path: `${nodes}/${name}/status` },
      patchType: "application/strategic-merge-patch+json",
      body: { status: { conditions: [shuttingDown] } },
    });
  }
  const isCordoned = (name: string) => world.marksOf(name).includes("unschedulable");
  for (let turns = 0; !names.every(isCordoned); turns += 1) {
    if (turns > 500) throw new Error("not every marked node was cordoned within ten seconds");
    await world.pass(millis(20));
  }
  const { user, system } = process.cpuUsage(before);
  stop.abort();
  await running;
  return Math.round((user + system) / 1000);
}

// The first run warms up the compiler.
await cordonsMs(fleets[0]);
const [small, large] = [await cordonsMs(fleets[0]), await cordonsMs(fleets[1])];
const figures: Figure[] = [
  { name: `cordons of ${marked} marked nodes, of ${fleets[0]}`, value: small, unit: "ms" },
  { name: `cordons of ${marked} marked nodes, of ${fleets[1]}`, value: large, unit: "ms" },
  {
    name: `growth from ${fleets[0]} to ${fleets[1]} nodes`,
    ...{ value: Number((large / small).toFixed(2)), unit: "x", goal: growthGoal },
  },
];
writeResult({ bench: "marks", setting: { marked }, figures });
