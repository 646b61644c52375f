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

/** All rules, the most harmful first; reports keep this order within a severity. */
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

/** The position of a rule in the list; 0 is the most harmful. */
export function rankOf(ruleId: string): number {
  return ruleList.findIndex((rule) => rule.id === ruleId);
}
