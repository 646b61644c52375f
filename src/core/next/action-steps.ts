import {
  actionRecords,
  dueActions,
  isMessage,
  isUnfinished,
  pointsReached,
  undoableRecords,
} from "../action/action-plan.ts";
import type { ActionRecord } from "../departure/departure.ts";
import { begunLastAt } from "../departure/ledger.ts";
import { reactionTo } from "../notice/interruption.ts";
import type { ActionPoint } from "../policy/action.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";

/** The key of the request that carries out an action. */
export function runKey(name: string): string {
  return `run action ${name}`;
}

function undoKey(name: string): string {
  return `undo action ${name}`;
}

/**
 * Starts the actions that are due, whatever has made them so: the phase, or a notice with another
 * cause. Neither cordon nor drain waits for them.
 */
export function actionsBegun(evaluation: Evaluation): StepFinding {
  if (!hasActions(evaluation)) return undefined;
  beginDue(evaluation);
  evaluation.recordsActions = true;
  return undefined;
}

/**
 * Before the drain of a departure that has time: waits for the required actions, and rolls the
 * departure back if one has failed.
 */
export function requiredActionsDone(evaluation: Evaluation): StepFinding {
  if (!hasActions(evaluation)) return undefined;
  evaluation.remember({ isDrainNear: true });
  beginDue(evaluation);
  const { actions } = evaluation.scene.policy;
  const required = new Set(actions.filter((one) => one.required).map(({ name }) => name));
  if (required.size === 0 || evaluation.isPressing) return undefined;
  evaluation.report("ActionWait", [...required].join(", "));
  const failed = failedOf((one) => isBeforeDrain(one) && required.has(one.name), evaluation);
  if (failed === "Wait") return "Wait";
  const [first] = failed;
  if (first === undefined) return undefined;
  const detail = `${first.name}: ${first.detail ?? first.result}`;
  return { event: "GaveUp", reason: "ActionFailed", detail };
}

/** Whether the machine has left its target groups, if an action deregisters it. */
export function deregistered(evaluation: Evaluation): StepFinding {
  const isMeant = (one: ActionRecord) => isBeforeDrain(one) && one.kind === "deregisterTargets";
  return failedOf(isMeant, evaluation) === "Wait" ? "Wait" : undefined;
}

/**
 * Before the release: waits for the actions after the drain, which may need the machine. Failed
 * ones do not count.
 */
export function lastActionsDone(evaluation: Evaluation): StepFinding {
  return failedOf(({ at }) => at === "AfterDrain", evaluation) === "Wait" ? "Wait" : undefined;
}

/**
 * Before the node is uncordoned: undoes what actions have changed around it. A notice that begins
 * them again ends that, or they would be undone after they have begun.
 */
export function actionsUndone(evaluation: Evaluation): StepFinding {
  return undone(evaluation) ? undefined : "Wait";
}

/** Before the departure is held: the same, and ends what an earlier process has started. */
export function actionsSuspended(evaluation: Evaluation): StepFinding {
  if (!undone(evaluation)) return "Wait";
  const left = evaluation.scene.actions.filter(
    ({ name, state }) => state === "Running" && !isInFlight(runKey(name), evaluation),
  );
  if (left.length === 0) return undefined;
  const names = left.map(({ name }) => name);
  const key = "interrupt actions";
  const done = evaluation.ask({ kind: "InterruptActions", names, key, stops: true });
  return done === undefined ? "Wait" : undefined;
}

/** After the outcome: waits for running actions, and for those at the end. */
export function actionsFinished(evaluation: Evaluation): StepFinding {
  if (!hasActions(evaluation)) return undefined;
  const records = recordsNow(evaluation);
  const isEarlier = ({ at, name }: ActionRecord) =>
    at !== "AtEnd" && isInFlight(runKey(name), evaluation);
  if (records.some(isEarlier)) return "Wait";
  beginDue(evaluation);
  if (records.some((one) => isOpen(one, evaluation))) return "Wait";
  const key = "record actions at the end";
  return evaluation.ask({ kind: "RecordActions", key }) === undefined ? "Wait" : undefined;
}

/**
 * What is on its way goes on, in whatever phase; but nothing except messages goes on while the
 * departure is undone. Writes the records of a phase in which no action is running.
 */
export function actionsKept(evaluation: Evaluation): void {
  const asked = new Set(evaluation.requests.map(({ key }) => key));
  for (const { name, kind } of evaluation.scene.actions) {
    const key = runKey(name);
    const isEnded = evaluation.isUndoing && !isMessage(kind);
    if (isEnded || asked.has(key) || !isInFlight(key, evaluation)) continue;
    evaluation.requests.push({ kind: "RunAction", name, key });
  }
  // A running action writes its own record, and the others with it.
  const isRunning = evaluation.requests.some(({ kind }) => kind === "RunAction");
  if (!evaluation.recordsActions || isRunning) return;
  const key = `record actions for ${evaluation.departure.cause}`;
  evaluation.attempt({ kind: "RecordActions", key });
}

/**
 * Asks once a phase for each action that is due; one that is being undone waits for that. After a
 * roll-back that a notice has ended, its uncordon may still arrive: no action begins before that,
 * or the node would be in use again while the action is in effect.
 */
function beginDue(evaluation: Evaluation): void {
  const asked = Object.values(evaluation.memory.asked);
  if (asked.some(({ kind, isInFlight }) => kind === "Uncordon" && isInFlight)) return;
  const due = dueActions(evaluation.scene.policy.actions, {
    records: recordsNow(evaluation),
    reached: pointsNow(evaluation),
    underWay: (name) => isInFlight(undoKey(name), evaluation),
  });
  for (const { name } of due) {
    evaluation.attempt({ kind: "RunAction", name, key: runKey(name) });
  }
}

function pointsNow({ memory, scene, status }: Evaluation): readonly ActionPoint[] {
  const drains = reactionTo(scene.departure, scene.policy) !== "Cordon";
  const points = pointsReached(status.phase, { drains });
  return status.phase === "Preparing" && memory.isDrainNear ? [...points, "BeforeDrain"] : points;
}

/** The records by the cause and the phase of now. */
function recordsNow({ scene, departure, status }: Evaluation): readonly ActionRecord[] {
  const { actions, dryRun } = scene.policy;
  const { cause } = departure;
  const records = scene.actions;
  const begunAt = begunLastAt(status);
  return actionRecords(actions, { cause, phase: status.phase, records, begunAt, dryRun });
}

function isBeforeDrain({ at }: ActionRecord): boolean {
  return at === "AtNotice" || at === "BeforeDrain";
}

/** The failed ones of these, once none is running. Not awaited if every second counts. */
function failedOf(
  isMeant: (record: ActionRecord) => boolean,
  evaluation: Evaluation,
): readonly ActionRecord[] | "Wait" {
  if (!hasActions(evaluation) || evaluation.isPressing) return [];
  const records = recordsNow(evaluation).filter(isMeant);
  if (records.some((one) => isOpen(one, evaluation))) return "Wait";
  return records.filter(({ state }) => state === "Failed");
}

/** Whether it is on its way, or will be. One whose point is not reached is not awaited. */
function isOpen(record: ActionRecord, evaluation: Evaluation): boolean {
  const asked = evaluation.memory.asked[runKey(record.name)];
  if (asked?.isInFlight === true) return true;
  const isReached = pointsNow(evaluation).includes(record.at);
  return isUnfinished(record) && isReached && asked?.answer === undefined;
}

/** Whether nothing is left to undo. What could not be undone is not tried again in this phase. */
function undone(evaluation: Evaluation): boolean {
  evaluation.isUndoing = true;
  const { actions } = evaluation.scene;
  const isRunning = ({ kind, name }: ActionRecord) =>
    !isMessage(kind) && isInFlight(runKey(name), evaluation);
  // The node is not uncordoned before a receiver has responded to a permanent change.
  let isDone = !actions.some(isRunning);
  for (const same of Map.groupBy(undoableRecords(actions), ({ kind }) => kind).values()) {
    if (same.some(isRunning)) continue;
    const first = latestFirst(same).find(
      ({ name }) => evaluation.memory.asked[undoKey(name)]?.answer === undefined,
    );
    if (first === undefined) continue;
    isDone = false;
    const { name } = first;
    evaluation.ask({ kind: "UndoAction", name, key: undoKey(name), stops: true });
  }
  return isDone;
}

/** Of one kind, what a later action found, an earlier one had made. */
function latestFirst(records: readonly ActionRecord[]): readonly ActionRecord[] {
  const begunMs = ({ startedAt }: ActionRecord): number => startedAt ?? 0;
  return records.toReversed().toSorted((a, b) => begunMs(b) - begunMs(a));
}

function isInFlight(key: string, { memory }: Evaluation): boolean {
  return memory.asked[key]?.isInFlight === true;
}

/** Most policies have no actions: then nothing is requested or written. */
function hasActions({ scene }: Evaluation): boolean {
  return scene.policy.actions.length > 0 || scene.actions.length > 0;
}
