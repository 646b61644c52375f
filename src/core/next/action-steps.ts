import type { Evaluation, StepFinding } from "./evaluation.ts";
import type { AwaitedActions } from "./request.ts";

/**
 * Starts the actions that are due: once a phase, and again for another cause, which may make others
 * due. Neither cordon nor drain waits for them.
 */
export function actionsBegun(evaluation: Evaluation): StepFinding {
  const key = `begin actions for ${evaluation.departure.cause}`;
  if (hasActions(evaluation)) evaluation.attempt({ kind: "BeginActions", key });
  return undefined;
}

/**
 * Before the drain of a departure that has time: waits for the required actions, and rolls the
 * departure back if one has failed.
 */
export function requiredActionsDone(evaluation: Evaluation): StepFinding {
  if (!hasActions(evaluation)) return undefined;
  const key = "begin actions before the drain";
  const begun = evaluation.attempt({ kind: "BeginActions", point: "BeforeDrain", key });
  const required = evaluation.scene.policy.actions.filter((one) => one.required);
  if (required.length === 0 || evaluation.isPressing) return undefined;
  evaluation.report("ActionWait", required.map(({ name }) => name).join(", "));
  if (begun === undefined) return "Wait";
  const failed = failedOf("Required", evaluation);
  if (failed === "Wait") return "Wait";
  const [first] = failed;
  if (first === undefined) return undefined;
  const detail = `${first.name}: ${first.detail ?? first.result}`;
  return { event: "GaveUp", reason: "ActionFailed", detail };
}

/** Whether the machine has left its target groups, if an action deregisters it. */
export function deregistered(evaluation: Evaluation): StepFinding {
  return failedOf("Deregistering", evaluation) === "Wait" ? "Wait" : undefined;
}

/**
 * Before the release: waits for the actions after the drain, which may need the machine. Failed
 * ones do not count.
 */
export function lastActionsDone(evaluation: Evaluation): StepFinding {
  return failedOf("AfterDrain", evaluation) === "Wait" ? "Wait" : undefined;
}

function failedOf(which: AwaitedActions, evaluation: Evaluation) {
  if (!hasActions(evaluation) || evaluation.isPressing) return [];
  const key = `actions ${which}`;
  const settled = evaluation.ask({ kind: "AwaitActions", which, key, stops: true });
  return settled?.kind === "Settled" ? settled.failed : "Wait";
}

/**
 * Before the node is uncordoned: undoes what actions have changed around it. A notice that begins
 * them again ends that, or they would be undone after they have begun.
 */
export function actionsUndone(evaluation: Evaluation): StepFinding {
  if (!hasActions(evaluation)) return undefined;
  const undone = evaluation.ask({ kind: "UndoActions", key: "undo actions", stops: true });
  return undone === undefined ? "Wait" : undefined;
}

/** Before the departure is held: the same, and ends what an earlier process has started. */
export function actionsSuspended(evaluation: Evaluation): StepFinding {
  const key = "suspend actions";
  const suspended = evaluation.ask({ kind: "SuspendActions", key, stops: true });
  return suspended === undefined ? "Wait" : undefined;
}

/** After the outcome: waits for running actions, and for those at the end. */
export function actionsFinished(evaluation: Evaluation): StepFinding {
  if (!hasActions(evaluation)) return undefined;
  const key = "finish actions";
  return evaluation.ask({ kind: "FinishActions", key }) === undefined ? "Wait" : undefined;
}

/** Most policies have no actions: then nothing is requested or written. */
function hasActions({ scene }: Evaluation): boolean {
  return scene.policy.actions.length > 0 || scene.actions.length > 0;
}
