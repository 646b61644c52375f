/**
 * The speed of the fault machine: worlds with faults, one after another in one process on one
 * core, and what the heap holds after them. Wall time of a shared machine says little, so each
 * figure is also a ratio to a fixed piece of work that is done between the worlds.
 */
import "../test/support/temporal-setup.ts";
import { parseArgs } from "node:util";
import { drawWorld } from "../test/fault-machine/draw-world.ts";
import { runWorld } from "../test/fault-machine/run-world.ts";
import { type Figure, rounded, writeResult } from "./result-file.ts";

const { values } = parseArgs({ options: { seeds: { type: "string", default: "30" } } });
const seeds = Number(values.seeds);
/** The first worlds are run while the code is still being compiled. */
const warmUp = 3;

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The fixed piece of work: text keys and small objects, as in the model. */
function fixedWork(): number {
  const counts: Record<string, number> = {};
  let sum = 0;
  for (let index = 0; index < 400_000; index += 1) {
    const key = `key-${index % 1000}`;
    counts[key] = (counts[key] ?? 0) + index;
    sum ^= counts[key];
  }
  return sum;
}

async function measured<T>(work: () => T | Promise<T>): Promise<{ ms: number; result: T }> {
  const startMs = cpuMs();
  const result = await work();
  return { ms: cpuMs() - startMs, result };
}

function heapMiB(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

let [worldsMs, fixedMs, departures, nodeHours, heapBefore] = [0, 0, 0, 0, 0];
for (let seed = 1; seed <= warmUp + seeds; seed += 1) {
  const { ms, result } = await measured(() => runWorld(drawWorld(seed)));
  if (seed < warmUp) continue;
  if (seed === warmUp) {
    heapBefore = heapMiB();
    continue;
  }
  worldsMs += ms;
  fixedMs += (await measured(fixedWork)).ms;
  departures += result.departures;
  nodeHours += result.nodeHours;
}
const core = (count: number) => rounded((count * 1000) / worldsMs);
const figures: Figure[] = [
  { name: "node-hours a second and core", value: core(nodeHours), unit: "1/s" },
  { name: "departures a second and core", value: core(departures), unit: "1/s" },
  {
    name: "CPU time of a world, beside the fixed work",
    ...{ value: rounded(worldsMs / seeds), unit: "ms" },
    ...{ rawLimit: rounded(fixedMs / seeds), ratio: rounded(worldsMs / fixedMs) },
  },
  {
    name: `heap that ${departures} departures have added`,
    ...{ value: rounded(Math.max(0, heapMiB() - heapBefore)), unit: "MiB" },
  },
];
writeResult({ bench: "sim", setting: { seeds, departures, hours: rounded(nodeHours) }, figures });
// What a stopped model still waits for must not keep the process.
process.exit(0);
