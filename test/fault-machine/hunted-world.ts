import { readCorpus } from "./corpus.ts";
import { drawWorld } from "./draw-world.ts";
import { runWorld } from "./run-world.ts";
import type { World } from "./world.ts";

/** Which rules one world broke. */
export interface Hunted {
  readonly at: string;
  readonly broken: readonly string[];
}

/** Seeds whose worlds have these kinds of faults, and then what the corpus has of them. */
export function* huntedWorlds(
  seeds: number,
  kinds: readonly string[],
): Generator<{ readonly at: string; readonly world: World }> {
  for (let seed = 1; seed <= seeds; seed += 1) {
    yield { at: `seed ${seed}`, world: drawWorld(seed, kinds) };
  }
  for (const [name, { world }] of readCorpus()) {
    const isMeant = world.faults.every(({ kind }) => kinds.includes(kind));
    if (isMeant) yield { at: name, world };
  }
}

export async function brokenIn(world: World): Promise<readonly string[]> {
  const { violations } = await runWorld(world);
  return [...new Set(violations.map(({ checker }) => checker))].toSorted();
}
