import type { Decision } from "../departure/decision.ts";
import type { Pass } from "./plan.ts";

/**
 * The decisions without the moves that follow from a start which has not happened yet: one that
 * this pass asks for, or that the plan expects now. The pass that sees the start, or what holds it,
 * moves the others. If that cannot be recorded, every pass would move all others a little further.
 */
export function withoutEarlyMoves(decisions: readonly Decision[], pass: Pass): readonly Decision[] {
  const { planned, begun, leaving, now, snapshot } = pass;
  const expected = snapshot.departures.flatMap(({ node, status }) => {
    const found = status.phase === "Scheduled" ? planned.get(node.uid) : undefined;
    return found !== undefined && found.entry.departAt <= now ? [found.policy.name] : [];
  });
  const starting = new Set([...begun, ...expected]);
  return decisions.filter((one) => {
    if (one.kind !== "Move" || leaving.has(one.departure.node.uid)) return true;
    if (one.departAt <= now) return true;
    const { departure, policy = "" } = one;
    return departure.policy !== policy || !starting.has(policy);
  });
}
