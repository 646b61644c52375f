import type { Fleet } from "../contracts/fleet.ts";
import { isLive, isVoluntary } from "../core/departure.ts";
import { defaultPolicy } from "../core/policy-default.ts";
import type { CaseBook } from "./case-book.ts";

/**
 * The fast side: a Departure that the cloud's word has made begins at once, in the turn in which
 * the watch shows it, whatever the rotation is doing. Cases under way hear of every change here.
 */
export function followInterruptions(
  tools: { readonly fleet: Fleet; readonly cases: CaseBook },
  signal: AbortSignal,
): () => void {
  const { fleet, cases } = tools;
  const look = (): void => {
    const view = fleet.view();
    const nodes = new Map(view.nodes.map((node) => [node.name, node]));
    cases.observe(view.departures, nodes);
    for (const departure of view.departures) {
      if (!isLive(departure)) continue;
      const noticed = departure.noticedAt !== undefined || !isVoluntary(departure.cause);
      if (!noticed) continue;
      const policy = view.policies.find((one) => one.name === departure.policy) ?? defaultPolicy;
      const fresh = departure.status.phase === "Scheduled" || departure.status.phase === "Held";
      cases.open(departure, {
        policy,
        signal,
        ...(fresh ? { first: { event: "Noticed", reason: "Noticed" } as const } : {}),
      });
    }
  };
  look();
  return fleet.onChange(look);
}
