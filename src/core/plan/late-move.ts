import type { Decision } from "../departure/decision.ts";
import type { Departure } from "../departure/departure.ts";
import type { Pass } from "./pass.ts";

/**
 * The decisions without the moves of future departures that follow from a start which has not
 * happened yet: one that this pass asks for, or that the plan expects now, and not one that waits
 * for its turn. The pass that sees the start moves them. While one that is due is held, or its
 * start cannot be recorded, every pass would move all of them a little further, and each move would
 * trigger the next pass. One that is due itself has to be moved, otherwise it would start; then the
 * others of its policy are, too, otherwise it would be put behind one that was to leave after it.
 * That happens at most once per gap.
 */
export function withoutEarlyMoves(decisions: readonly Decision[], pass: Pass): readonly Decision[] {
  const { planned, begun, leaving, now, snapshot } = pass;
  const expected = snapshot.departures.flatMap(({ node, status }) => {
    const isWaiting = status.phase === "Scheduled" || status.phase === "Held";
    const found = isWaiting ? planned.get(node.uid) : undefined;
    return found !== undefined && found.entry.beginAt <= now ? [found.policy.name] : [];
  });
  const starting = new Set([...begun, ...expected]);
  const isDue = ({ departAt = now }: Departure): boolean => departAt <= now;
  const isLeaving = ({ node }: Departure): boolean => leaving.has(node.uid);
  const pushed = new Set(
    decisions.flatMap((one) => {
      const isPush = one.kind === "Move" && one.departAt > now && isDue(one.departure);
      return isPush && !isLeaving(one.departure) ? [one.departure.policy] : [];
    }),
  );
  return decisions.filter((one) => {
    if (one.kind !== "Move" || one.departAt <= now) return true;
    const { departure, policy = "" } = one;
    if (isDue(departure) || isLeaving(departure)) return true;
    return departure.policy !== policy || !starting.has(policy) || pushed.has(policy);
  });
}
