import type { Manifest } from "./objects/manifest.ts";
import type { Workload } from "./objects/workload.ts";
import type { Rule } from "./report.ts";
import {
  noSpread,
  readinessMissing,
  singleReplica,
  spreadSelectsNothing,
} from "./rules/availability-rules.ts";
import { pdbBlocksForever, pdbMissing, twoPdbs } from "./rules/disruption-budget-rules.ts";
import { gangOnSpot } from "./rules/gang-rules.ts";
import { localData } from "./rules/local-data-rules.ts";
import { unreadableMark } from "./rules/mark-rules.ts";
import {
  execSigtermLost,
  graceCut,
  noGracefulShutdown,
  prestopEatsBudget,
  prestopOverGrace,
} from "./rules/shutdown-rules.ts";
import { criticalOnSpot, lbDelayOverNotice, longJobOnSpot } from "./rules/spot-rules.ts";

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
  unreadableMark,
  localData,
  criticalOnSpot,
  gangOnSpot,
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

/** `<rule>: <reason>`; several are separated by line breaks or semicolons. */
export const ignoreAnnotation = "lastcall.dev/audit-ignore";

const nextEntry = /[;\n]\s*(?=[a-z][a-z-]*\s*(?:[:;\n]|$))/;

/** The reasons for which an object ignores rules, by rule id. */
export function ignoredRules(about: Workload | Manifest): ReadonlyMap<string, string> {
  const reasons = new Map<string, string>();
  for (const entry of entriesOf(about)) {
    const colon = entry.indexOf(":");
    const reason = colon < 0 ? "" : entry.slice(colon + 1).trim();
    if (reason !== "") reasons.set(entry.slice(0, colon).trim(), reason);
  }
  return reasons;
}

/** Entries that have no effect, each as one sentence: no reason, or no rule of that name. */
export function faultyIgnores(about: Workload | Manifest): readonly string[] {
  return entriesOf(about).flatMap((entry) => {
    const [rule = "", ...rest] = entry.split(":");
    const id = rule.trim();
    if (!ruleList.some((one) => one.id === id))
      return [`names the unknown rule ${JSON.stringify(id)}`];
    return rest.join(":").trim() === ""
      ? [`ignores ${id} without a reason, so it is not ignored`]
      : [];
  });
}

function entriesOf(about: Workload | Manifest): readonly string[] {
  const texts =
    "template" in about
      ? [about.manifest.annotations[ignoreAnnotation], about.template.annotations[ignoreAnnotation]]
      : [about.annotations[ignoreAnnotation]];
  const written = [...new Set(texts.filter((text) => text !== undefined))];
  return written
    .flatMap((text) => text.split(nextEntry))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}
