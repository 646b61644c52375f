import { type Checker, keepsFromNodes, stopsActs, stopsNews } from "../checker.ts";
import { durationMs } from "../policy-oracle.ts";
import type { At } from "../trace.ts";
import { isVoluntary, marks, type NodeObject, phaseOf, underWay, type View } from "../view.ts";

const minute = 60_000;

/** How long all phases may last together; undefined: the policy lets a drain wait without end. */
function boundOf(view: View): number | undefined {
  const { drain, instance, replacement } = view.policyAt(view.now) ?? view.world.policy;
  if (drain.onTimeout === "Wait") return undefined;
  const graces = view.world.workloads.map(({ graceSeconds }) => graceSeconds * 1000);
  const waits = [drain.timeout, instance.awaitMachine, replacement?.timeout ?? "0s"];
  return waits.map(durationMs).reduce((sum, ms) => sum + ms, 60 * minute + Math.max(0, ...graces));
}

/** A fault under which a node cannot be given back, or its machine is on its way out. */
function keepsCordon(name: string): boolean {
  const isInTheWay = /^(slow-stop|release-|cloud-|watch-)/.test(name);
  if (name === "refuse-status") return false;
  return stopsActs(name) || keepsFromNodes(name) || isInTheWay;
}

interface Cordon {
  readonly departure: string;
  readonly from: At;
  isTold: boolean;
}

/** Unlike the phases, which a Departure that may not be written still names. */
export const cordonsEnd: Checker = {
  name: "cordons-end",
  rule: "no voluntary departure keeps a node cordoned for longer than its policy gives, also if nothing of it can be recorded",
  start: () => {
    const cordons = new Map<string, Cordon>();
    return (event, view) => {
      if (event.kind === "Change" && event.storage === "nodes") {
        const node = event.object as NodeObject;
        const departure = node.metadata.annotations?.[marks.departure];
        const isCordoned = event.type !== "DELETED" && departure !== undefined;
        const { name } = node.metadata;
        if (!isCordoned) cordons.delete(name);
        else if (cordons.get(name)?.departure !== departure)
          cordons.set(name, { departure, from: event.at, isTold: false });
      }
      for (const [name, cordon] of cordons) {
        const departure = view.departures.get(cordon.departure);
        const isMeant = departure !== undefined && isVoluntary(departure) && !cordon.isTold;
        if (!isMeant || view.machines.get(name)?.state !== "Registered") continue;
        if (event.at - cordon.from <= 60 * minute) continue;
        const bound = boundOf(view);
        if (bound === undefined || event.at - cordon.from <= bound) continue;
        const span = { from: cordon.from, to: event.at };
        if (event.at - cordon.from - view.troubledMs(span, keepsCordon, 2 * minute) <= bound)
          continue;
        cordon.isTold = true;
        const minutes = Math.round((event.at - cordon.from) / minute);
        return `${name} has been cordoned for ${minutes} min by ${cordon.departure}`;
      }
      return undefined;
    };
  },
};

/** A fault under which marks cannot be seen, or not be taken away. */
function keepsMarks(name: string): boolean {
  return stopsActs(name) || stopsNews(name) || keepsFromNodes(name);
}

export const markHasDeparture: Checker = {
  name: "mark-has-departure",
  rule: "no node carries our marks for five minutes without a live Departure that explains them",
  start: () => {
    const since = new Map<string, At>();
    return (event, view) => {
      if (
        event.kind !== "Change" ||
        (event.storage !== "nodes" && !event.storage.startsWith("departures."))
      )
        return undefined;
      for (const [name, node] of view.nodes) {
        const isMarked = node.metadata.annotations?.[marks.departure] !== undefined;
        const departure = view.departureOf(node);
        // One that waits has marked nothing, though it may have the name of one that has.
        const isExplained = departure !== undefined && underWay.includes(phaseOf(departure));
        // A machine that is on its way out keeps its marks, also if its Departure is deleted.
        const isOrphan =
          isMarked && !isExplained && view.machines.get(name)?.state === "Registered";
        if (!isOrphan) since.delete(name);
        else if (!since.has(name)) since.set(name, event.at);
      }
      for (const [name, from] of since) {
        const troubled = view.troubledMs({ from: from - 60_000, to: event.at }, keepsMarks, 60_000);
        if (event.at - from - troubled <= 300_000) continue;
        since.delete(name);
        return `${name} carries the mark of a departure that is not live`;
      }
      return undefined;
    };
  },
};
