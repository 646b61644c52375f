import type { Decision } from "../departure/decision.ts";
import type { Pass } from "./plan.ts";

/**
 * The decisions without the moves of future departures that follow from a start which has not
 * happened yet: one that this pass asks for, or that the plan expects now. The pass that sees the
 * start, or what holds it, moves them. If that cannot be recorded, every pass would move all of
 * them a little further. One that is due itself is moved: otherwise it would start.
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
    const { departure, policy = "" } = one;
    if (one.departAt <= now || (departure.departAt ?? now) <= now) return true;
    return departure.policy !== policy || !starting.has(policy);
  });
}
