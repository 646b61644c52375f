import type { Checker } from "../checker.ts";
import { type DepartureObject, phaseOf } from "../view.ts";

const withMachine = ["Planned", "Preempted", "Forced", "Expired"];

export const actionsAreUndone: Checker = {
  name: "actions-are-undone",
  rule: "what a departure has changed around a machine that stays is undone, whoever leads by then",
  start: () => {
    /** By key: what is in effect, and for which Departure. */
    const inEffect = new Map<string, { readonly uid: string; readonly name: string }>();
    /** By name, which a later Departure of the node may have again. */
    const uids = new Map<string, string>();
    const outcomes = new Map<string, string | undefined>();
    /** Whose record says that an undo is impossible: its address was in the policy alone. */
    const told = new Set<string>();
    return (event, view) => {
      if (event.kind === "Change" && event.storage.startsWith("departures.")) {
        const { metadata, status } = event.object as DepartureObject;
        uids.set(metadata.name, metadata.uid);
        outcomes.set(metadata.uid, status?.outcome);
        const isTold = status?.actions?.some(({ result }) => result === "ACTION_UNSUPPORTED");
        if (isTold) told.add(metadata.uid);
      }
      if (event.kind === "Action") {
        const { key, departure: name } = event;
        if (event.call === "undo") inEffect.delete(key);
        else inEffect.set(key, { uid: uids.get(name) ?? "", name });
      }
      if (event.kind !== "End") return undefined;
      // A drain that waits without end keeps what goes with it.
      const waits = view.policyUnderWay().drain.onTimeout === "Wait";
      const draining = [...view.departures.values()].filter((one) => phaseOf(one) === "Draining");
      const waiting = new Set(waits ? draining.map(({ metadata }) => metadata.uid) : []);
      const left = [...inEffect.values()].find(
        ({ uid }) =>
          !told.has(uid) && !waiting.has(uid) && !withMachine.includes(outcomes.get(uid) ?? ""),
      );
      if (left === undefined) return undefined;
      return `an action of ${left.name} is still in effect: ${outcomes.get(left.uid) ?? "it has not ended"}`;
    };
  },
};
