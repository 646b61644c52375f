import type { BudgetFacts } from "../../core/cluster/pod.ts";
import { isNoticed } from "../../core/departure/departure.ts";
import { type Millis, millis } from "../../core/time/time.ts";
import { messageOf } from "../../errors.ts";
import type { StepContext } from "./step.ts";

/** How long a drain under a notice waits for the list of budgets. */
const budgetsTimeoutMs: Millis = millis(500);

/**
 * Lists the budgets for a drain. They only serve the forecast, since the eviction API enforces
 * them: under a notice, also one that arrives meanwhile, the drain proceeds without them if they
 * cannot be read at once. Without one it waits until they can, or its requests have failed for too
 * long.
 */
export async function listBudgets(
  context: StepContext,
  signal: AbortSignal,
): Promise<readonly BudgetFacts[]> {
  const { pods, departure, retry, onObserved } = context;
  if (isNoticed(departure())) return listedAtOnce(context, signal);
  const noticed = new AbortController();
  const stop = onObserved(() => {
    if (isNoticed(departure())) noticed.abort();
  });
  try {
    return await retry(() => pods.budgets(), AbortSignal.any([signal, noticed.signal]));
  } catch (error) {
    if (signal.aborted || !noticed.signal.aborted) throw error;
    return await listedAtOnce(context, signal);
  } finally {
    stop();
  }
}

async function listedAtOnce(
  { pods, clock, log, departure }: StepContext,
  signal: AbortSignal,
): Promise<readonly BudgetFacts[]> {
  const without = (error: string): readonly BudgetFacts[] => {
    if (!signal.aborted) log.warn("budgets-not-read", { departure: departure().name, error });
    return [];
  };
  const answered = new AbortController();
  const asked = pods.budgets().catch((error: unknown) => without(messageOf(error)));
  const late = clock
    .sleep(budgetsTimeoutMs, AbortSignal.any([signal, answered.signal]))
    .then(() => without(`no response within ${budgetsTimeoutMs} ms`));
  late.catch(() => undefined);
  try {
    return await Promise.race([asked, late]);
  } finally {
    answered.abort();
  }
}
