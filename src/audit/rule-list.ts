import type { Rule } from "./rule.ts";
import { criticalOnSpot } from "./rules/critical-on-spot.ts";
import { execSigtermLost } from "./rules/exec-sigterm-lost.ts";
import { graceCut } from "./rules/grace-cut.ts";
import { lbDelayOverNotice } from "./rules/lb-delay-over-notice.ts";
import { localData } from "./rules/local-data.ts";
import { longJobOnSpot } from "./rules/long-job-on-spot.ts";
import { noGracefulShutdown } from "./rules/no-graceful-shutdown.ts";
import { noSpread } from "./rules/no-spread.ts";
import { pdbBlocksForever } from "./rules/pdb-blocks-forever.ts";
import { pdbMissing } from "./rules/pdb-missing.ts";
import { prestopEatsBudget } from "./rules/prestop-eats-budget.ts";
import { prestopOverGrace } from "./rules/prestop-over-grace.ts";
import { readinessMissing } from "./rules/readiness-missing.ts";
import { singleReplica } from "./rules/single-replica.ts";
import { spreadSelectsNothing } from "./rules/spread-selects-nothing.ts";
import { twoPdbs } from "./rules/two-pdbs.ts";

/** All rules, ordered by what hurts first; reports keep this order within a severity. */
export const ruleList: readonly Rule[] = [
  graceCut,
  prestopOverGrace,
  prestopEatsBudget,
  twoPdbs,
  pdbBlocksForever,
  noGracefulShutdown,
  singleReplica,
  noSpread,
  spreadSelectsNothing,
  localData,
  criticalOnSpot,
  readinessMissing,
  execSigtermLost,
  lbDelayOverNotice,
  longJobOnSpot,
  pdbMissing,
];

/** How much a rule hurts: its place in the list, 0 the worst. */
export function rankOf(ruleId: string): number {
  return ruleList.findIndex((rule) => rule.id === ruleId);
}
