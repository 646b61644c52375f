import { actMutants } from "./mutants/act-mutants.ts";
import { endMutants } from "./mutants/end-mutants.ts";
import { evidenceMutants } from "./mutants/evidence-mutants.ts";
import { lastingMutants } from "./mutants/lasting-mutants.ts";
import type { Mutant } from "./mutants/mutant.ts";
import { startMutants } from "./mutants/start-mutants.ts";

/** Every deliberate bug. A new one is a new row, and is hunted from then on. */
export const mutants: readonly Mutant[] = [
  ...startMutants,
  ...actMutants,
  ...endMutants,
  ...lastingMutants,
  ...evidenceMutants,
];
