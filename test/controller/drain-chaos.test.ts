import { describe, expect, it } from "vitest";
import { type Rng, seededRng } from "../../src/core/chance/chance.ts";
import { minutes, plus, seconds } from "../../src/core/time/time.ts";
import type { ModelWorld } from "../support/model-world.ts";
import {
  capacityStory,
  depart,
  hasEnded,
  ledgerOf,
  noticeOf,
  placeholdersOf,
  workload,
} from "./capacity-story.ts";

/** One run per seed: `CHAOS_SEED=17` runs only that one. */
const seeds = process.env.CHAOS_SEED
  ? [Number(process.env.CHAOS_SEED)]
  : Array.from({ length: 30 }, (_, index) => index + 1);

interface Chaos {
  readonly world: ModelWorld;
  readonly leaving: readonly string[];
}

/** A fleet of which some nodes are to leave, with random workloads, budgets and policy. */
function chaosOf(rng: Rng): Chaos {
  const below = (limit: number) => Math.floor(rng() * limit);
  const pick = <T>(...choices: readonly T[]) => choices[below(choices.length)] as T;
  const nodes = Array.from({ length: 4 + below(3) }, (_, at) => `n${at}`);
  const world = capacityStory({
    nodes,
    replacement: pick<Record<string, string>>(
      { when: "None" },
      { when: "BeforeDrain", timeout: "2m", onTimeout: "Proceed" },
    ),
    drain: { timeout: "4m", onTimeout: pick("Wait", "Proceed", "RollBack") },
  });
  for (let app = 2 + below(3); app > 0; app -= 1) {
    workload(world, `app${app}`, {
      ...{ replicas: 1 + below(4), cpu: pick("250m", "500m", "1") },
      exitAfterSeconds: rng() < 0.2 ? "never" : 1 + below(40),
      ...(rng() < 0.7 ? { maxUnavailable: 1 } : {}),
    });
  }
  // Two nodes stay; without any, a drain may wait forever by design.
  return { world, leaving: nodes.slice(0, -2) };
}

/**
 * Runs one controller after another, each killed at a random time, until all nodes have left; now
 * and then the cloud gives notice for a node that is leaving already.
 */
async function carriedOut({ world, leaving }: Chaos, rng: Rng): Promise<void> {
  const until = plus(world.clock.now(), minutes(30));
  const noticed = new Set<string>();
  const isOver = () => leaving.every((name) => hasEnded(world, name)());
  while (!isOver() && world.clock.now() < until) {
    const stop = new AbortController();
    const running = world.startController(stop.signal);
    const [taken] = leaving.filter((name) => !noticed.has(name) && !hasEnded(world, name)());
    if (taken !== undefined && rng() < 0.2) {
      noticed.add(taken);
      noticeOf(world, taken, seconds(20 + Math.floor(rng() * 100)));
    }
    const lives = 5 + Math.floor(rng() * 120);
    for (let second = 0; second < lives && !isOver(); second += 1) await world.pass(seconds(1));
    if (isOver()) await world.pass(seconds(5));
    stop.abort();
    await running;
    await world.pass(seconds(Math.floor(rng() * 20)));
  }
}

function faultsOf({ world, leaving }: Chaos): readonly string[] {
  const ofNodes = leaving.flatMap((name) => {
    const { phase, outcome, drain = {}, ...rest } = ledgerOf(world, name);
    const count = (field: string) => Number(drain[field] ?? 0);
    const ended = count("cleanExit") + count("killed") + count("leftBehind");
    const forced = (drain.forcedPods as readonly unknown[] | undefined) ?? [];
    return [
      ...(phase === "Ended" ? [] : [`${name} is still ${phase}: ${rest.message}`]),
      ...(count("total") === ended ? [] : [`${name} lost count: ${JSON.stringify(drain)}`]),
      ...(count("forced") === forced.length ? [] : [`${name} does not name who was forced`]),
      ...(count("forced") > 0 && outcome === "Planned" ? [`${name} forced pods as planned`] : []),
      ...("demands" in rest ? [`${name} still holds budgets`] : []),
      ...(outcome === "RolledBack" ? world.marksOf(name).map((one) => `${name} has ${one}`) : []),
    ];
  });
  return [...ofNodes, ...placeholdersOf(world).map(({ name }) => `${name} was left`)];
}

describe("simultaneous departures, with controllers killed at random times,", () => {
  it.each(seeds)(
    "end with every pod accounted for and no placeholder or mark left (seed %i)",
    async (seed) => {
      const rng = seededRng(seed);
      const chaos = chaosOf(rng);
      await chaos.world.pass(seconds(60));
      for (const name of chaos.leaving) depart(chaos.world, name);
      await carriedOut(chaos, rng);
      expect(faultsOf(chaos)).toEqual([]);
    },
  );
});
