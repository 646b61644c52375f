import { between, type Millis } from "../time/time.ts";
import { type DepartureStatus, hasTakenMachine } from "./departure.ts";
import { staysOf } from "./stay.ts";

/** What is counted when a departure has ended. It follows from the status alone. */
export interface DepartureFigures {
  readonly podsKilled: number;
  readonly podsLost: number;
  /** Absent if there was no drain. The reason is the event that ended it, as in the timeline. */
  readonly drain?: { readonly ms: Millis; readonly reason: string } | undefined;
}

export function departureFigures(status: DepartureStatus): DepartureFigures {
  const { killed = 0, leftBehind = 0, left = 0 } = status.drain ?? {};
  return {
    podsKilled: killed,
    // If the machine ended during the drain, nothing was left behind yet; pods that came back
    // after the drain are not among those left to drain.
    podsLost: hasTakenMachine({ status }) ? Math.max(left, leftBehind) : 0,
    drain: drainOf(status),
  };
}

/** The last drain: a notice may have undone a roll-back and drained again. */
function drainOf(status: DepartureStatus): DepartureFigures["drain"] {
  const stays = staysOf(status);
  const index = stays.findLastIndex(({ phase }) => phase === "Draining");
  const [drain, next] = [stays[index], stays[index + 1]];
  if (drain?.at === undefined || next?.at === undefined) return undefined;
  return { ms: between(drain.at, next.at), reason: next.event ?? next.phase };
}
