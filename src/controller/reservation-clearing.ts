import type { Placeholders } from "../contracts/cluster-capacity.ts";
import type { Departure } from "../core/departure/departure.ts";
import { hasReserved } from "../core/departure/ledger.ts";
import type { Executor } from "./executor.ts";

export interface ClearingTools {
  readonly placeholders: Placeholders;
  readonly executor: Executor;
}

/** Takes away what placeholders a departure still has; asks nothing where it never made room. */
export async function clearReservation(departure: Departure, tools: ClearingTools): Promise<void> {
  if (!hasReserved(departure.status)) return;
  const all = await tools.placeholders.list();
  const own = all.filter((one) => one.departureUid === departure.uid && one.leaving === "Staying");
  await Promise.all(own.map((one) => tools.executor.removePlaceholder(one.name)));
}
