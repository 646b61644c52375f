import type { ActionRecord } from "../../core/departure/departure.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import type { ActionPoint } from "../../core/policy/action.ts";
import type { StepContext } from "../departure/step.ts";

/** Starts the actions that are due. Neither cordon nor drain waits for them. */
export async function beginActions({ actions }: StepContext): Promise<undefined> {
  actions.begin();
}

/**
 * Before the drain of a departure that has time: waits for the required actions, and rolls the
 * departure back if one has failed.
 */
export async function awaitRequiredActions(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { actions, report } = context;
  actions.begin("BeforeDrain");
  const { required } = actions;
  if (required.size === 0) return undefined;
  await report("ActionWait", [...required].join(", "));
  const these = ({ at, name }: ActionRecord) => isBeforeDrain(at) && required.has(name);
  const [first] = await failedOf(these, context, signal);
  if (first === undefined) return undefined;
  const detail = `${first.name}: ${first.detail ?? first.result}`;
  return { event: "GaveUp", reason: "ActionFailed", detail };
}

/** Waits until the machine has left its target groups, if an action deregisters it. */
export async function awaitDetached(context: StepContext, signal: AbortSignal): Promise<void> {
  const these = ({ at, kind }: ActionRecord) => isBeforeDrain(at) && kind === "deregisterTargets";
  await failedOf(these, context, signal);
}

/**
 * Before the release: waits for the actions after the drain, which may need the machine. Failed
 * ones do not count.
 */
export async function awaitLastActions(
  context: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  await failedOf(({ at }) => at === "AfterDrain", context, signal);
}

function isBeforeDrain(at: ActionPoint): boolean {
  return at === "AtNotice" || at === "BeforeDrain";
}

/** Waits for these actions and returns those that have failed. Does not wait under a notice. */
async function failedOf(
  these: (record: ActionRecord) => boolean,
  context: StepContext,
  signal: AbortSignal,
): Promise<readonly ActionRecord[]> {
  const { actions } = context;
  const pressed = new AbortController();
  const look = () => {
    if (actions.isPressing) pressed.abort();
  };
  const stopObserving = context.onObserved(look);
  try {
    look();
    const failed = await actions.settled(these, AbortSignal.any([signal, pressed.signal]));
    return actions.isPressing ? [] : failed;
  } catch (error) {
    if (!pressed.signal.aborted || signal.aborted) throw error;
    return [];
  } finally {
    stopObserving();
  }
}

/** Before the node is uncordoned: undoes what actions have changed around it. */
export async function undoActions(
  { actions }: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  await actions.undo(signal);
}
