import { type DepartureObject, departureStorage, phaseOf } from "./departure-object.ts";
import type { Invariant } from "./happening.ts";

/** Each departure ends in exactly one outcome, which stays; and every phase carries its reason. */
export const oneOutcome: Invariant = {
  name: "one-outcome",
  check: () => (happening) => {
    if (happening.kind !== "Change" || happening.storage !== departureStorage) return undefined;
    const { type, object } = happening.change;
    const [now, before] = [object, happening.change.previous] as [
      DepartureObject,
      DepartureObject | undefined,
    ];
    const { name } = now.metadata;
    if (type === "DELETED") {
      return phaseOf(now) === "Ended" ? undefined : `${name} was deleted before it had ended`;
    }
    const outcome = before?.status?.outcome;
    if (outcome !== undefined && outcome !== now.status?.outcome) {
      return `${name} ended as ${outcome} and then as ${now.status?.outcome ?? "nothing"}`;
    }
    const ended = phaseOf(now) === "Ended";
    if (ended !== (now.status?.outcome !== undefined)) {
      return `${name} is in phase ${phaseOf(now)} with the outcome ${now.status?.outcome ?? "none"}`;
    }
    const moved = before !== undefined && phaseOf(before) !== phaseOf(now);
    const isSaid = Boolean(now.status?.reason) && Boolean(now.status?.message);
    return moved && !isSaid ? `${name} came to ${phaseOf(now)} without a reason` : undefined;
  },
};
