/**
 * What a burst of notices costs the API server alone: the requests that each notice needs, sent by
 * a bare client without a controller, compared with the raw limit (only PATCH and eviction
 * requests) of the same round. `notice` compares the controller with that raw limit; what it takes
 * beyond these ratios is its own work. `npm run bench notice-bare --rounds 3`.
 */
import { parseArgs } from "node:util";
import { fillFleet, rest, startBenchWorld, untilPodsRun } from "./bench-world.ts";
import { type BurstTimes, bareBurst, median, rawBurst } from "./burst.ts";
import { beside, writeResult } from "./result-file.ts";

const podsPerNode = 5;
/** The same sizes and connections as in `notice`. */
const bursts = [
  { nodes: 300, connections: 64 },
  { nodes: 50, connections: 32 },
];

const { values } = parseArgs({ options: { rounds: { type: "string", default: "3" } } });
const rounds = Number(values.rounds);

interface Round {
  readonly raw: BurstTimes;
  readonly bare: BurstTimes;
}

const world = await startBenchWorld();
try {
  const figures = [];
  for (const { nodes, connections } of bursts) {
    const told: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const prefix = `bare-${nodes}-${round}`;
      const fleet = await fillFleet(world, { prefix, nodes: 2 * nodes, podsPerNode });
      await untilPodsRun(world);
      await rest(20);
      const halves = [fleet.slice(0, nodes), fleet.slice(nodes)] as const;
      // Alternates which one goes first.
      const [rawFleet, bareFleet] = round % 2 === 0 ? halves : halves.toReversed();
      const bareOf = () => bareBurst(world, bareFleet ?? [], connections);
      const rawOf = () => rawBurst(world, rawFleet ?? [], connections);
      const first = round % 2 === 0 ? await rawOf() : await bareOf();
      const second = round % 2 === 0 ? await bareOf() : await rawOf();
      const [raw, bare] = round % 2 === 0 ? [first, second] : [second, first];
      told.push({ raw: raw.times, bare: bare.times });
      console.log(JSON.stringify({ nodes, round, raw: raw.times, bare: bare.times }));
    }
    for (const [field, name] of [
      ["cordonedMs", "all cordoned"],
      ["evictedMs", "last eviction"],
    ] as const) {
      const { bare, raw } = median(told, (one) => one.bare[field] / one.raw[field]);
      const title = `${nodes} notices by a bare client, ${name}`;
      figures.push(beside({ name: title, ms: bare[field], rawMs: raw[field] }));
    }
  }
  writeResult({ bench: "notice-bare", setting: { podsPerNode, rounds }, figures });
} finally {
  await world.stop();
}
