import type { Rule } from "./report.ts";
import {
  noSpread,
  readinessMissing,
  singleReplica,
  spreadSelectsNothing,
} from "./rules/availability-rules.ts";
import { pdbBlocksForever, pdbMissing, twoPdbs } from "./rules/disruption-budget-rules.ts";
import {
  execSigtermLost,
  graceCut,
  noGracefulShutdown,
  prestopEatsBudget,
  prestopOverGrace,
} from "./rules/shutdown-rules.ts";
import { criticalOnSpot, lbDelayOverNotice, localData, longJobOnSpot } from "./rules/spot-rules.ts";

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
