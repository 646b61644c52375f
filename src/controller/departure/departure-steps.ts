import {
  awaitLastActions,
  awaitLoadBalancers,
  awaitRequiredActions,
  awaitVolumes,
  beginActions,
  drained,
  undoActions,
} from "./after-drain.ts";
import { heldAtTheAct } from "./asked-at-the-act.ts";
import { freeCapacity, reserveCapacity } from "./capacity-reservation.ts";
import { drain } from "./drain.ts";
import {
  checkRelease,
  cordon,
  identifyNode,
  isOnlyCordoned,
  isToCordonAtOnce,
  lookAhead,
  prepared,
  rolledBack,
  uncordon,
} from "./prepare.ts";
import { awaitBindings, awaitMachine, releaseAfter } from "./release.ts";
import type { Step, StepContext } from "./step.ts";

/** The checks before the cordon of a departure that has time. */
const checkSteps: readonly Step[] = [identifyNode, lookAhead, heldAtTheAct, checkRelease];

/** The preparations before the drain of a departure that has time. */
const prepareSteps: readonly Step[] = [reserveCapacity, awaitRequiredActions];

const drainSteps: readonly Step[] = [drain, awaitVolumes, awaitLoadBalancers, drained];

const releaseSteps: readonly Step[] = [awaitBindings, releaseAfter(drainSteps)];

/**
 * The steps of each phase, in order. They run one after another until one of them ends the phase. A
 * resumed run repeats its phase, and each step detects what has been done already.
 */
export function stepsOf(context: StepContext): readonly Step[] {
  switch (context.departure().status.phase) {
    case "Preparing":
      return isToCordonAtOnce(context)
        ? [beginActions, cordon, prepared]
        : [...checkSteps, cordon, beginActions, ...prepareSteps, prepared];
    case "Draining":
      return isOnlyCordoned(context)
        ? [beginActions, awaitMachine]
        : [beginActions, identifyNode, ...drainSteps];
    case "Releasing":
      return [beginActions, freeCapacity, awaitMachine, awaitLastActions, ...releaseSteps];
    case "RollingBack":
      return [freeCapacity, undoActions, uncordon, rolledBack];
    default:
      // The plan reconciler handles Scheduled and Held; a run starts with the event that ends them.
      return [];
  }
}
