import { hours, type Instant } from "../core/time/time.ts";
import { demoBudgetNodes, demoLifetimeHours, demoMayStart } from "./demo-policy.ts";
import type { Invariant } from "./happening.ts";
import { oneActor } from "./invariant-actor.ts";
import { budgetIsKept, evictionOnly } from "./invariant-budget.ts";
import { cordonBeforeEviction, cordonHasDeparture } from "./invariant-cordon.ts";
import { oneOutcome } from "./invariant-ledger.ts";
import { releaseAfterDrain, rightMachine } from "./invariant-release.ts";
import { plannedInTime, startIsAllowed } from "./invariant-start.ts";

/** What a run of the demo that began at `startAt` is held to. */
export function demoInvariants(startAt: Instant): readonly Invariant[] {
  return [
    startIsAllowed({
      mayStart: (at) => demoMayStart(startAt, at),
      budgetNodes: demoBudgetNodes,
    }),
    plannedInTime(hours(demoLifetimeHours)),
    releaseAfterDrain,
    rightMachine,
    budgetIsKept,
    evictionOnly,
    oneActor,
    cordonBeforeEviction,
    cordonHasDeparture,
    oneOutcome,
  ];
}
