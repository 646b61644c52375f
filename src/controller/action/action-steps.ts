import type { PhaseResult } from "../../core/departure/ledger.ts";
import type { StepContext } from "../departure/step.ts";

/** Begins what is due by now and waits for none of it: neither cordon nor drain has to. */
export async function beginActions({ actions }: StepContext): Promise<undefined> {
  actions.begin();
}

/**
 * Before the drain of a departure that has the time: waits for the actions that are required, and
 * undoes it all where one has failed. A notice ends the wait.
 */
export async function awaitRequiredActions(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { actions, report } = context;
  actions.begin("BeforeDrain");
  const { required } = actions;
  if (required.size === 0) return undefined;
  const pressed = new AbortController();
  const stopObserving = context.onObserved(() => {
    if (actions.isPressing) pressed.abort();
  });
  try {
    await report("ActionWait", [...required].join(", "));
    const until = AbortSignal.any([signal, pressed.signal]);
    const failed = await actions.settled(["AtNotice", "BeforeDrain"], until, ({ name }) =>
      required.has(name),
    );
    const [first] = failed;
    if (first === undefined || actions.isPressing) return undefined;
    const detail = `${first.name}: ${first.detail ?? first.result}`;
    return { event: "GaveUp", reason: "ActionFailed", detail };
  } catch (error) {
    if (!pressed.signal.aborted || signal.aborted) throw error;
    return undefined;
  } finally {
    stopObserving();
  }
}

/**
 * Before we let the machine go: what is done after the drain may need it. Failed ones do not count.
 */
export async function awaitLastActions(
  { actions }: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  await actions.settled(["AfterDrain"], signal);
}

/** Before the node takes pods again: what was changed around it is as it was. */
export async function undoActions(
  { actions }: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  await actions.undo(signal);
}
