import type { BoardNode, BoardNotice, DemoMachineState, Story } from "../../board/demo-picture.ts";
import { endSentence } from "../../board/outcome/ended-departures.ts";
import type { FleetFigures } from "../../board/stream.ts";
import type { FleetView } from "../../contracts/cluster.ts";
import { compareNames } from "../../core/cluster/name-order.ts";
import { type Departure, isLive } from "../../core/departure/departure.ts";
import { between, type Instant } from "../../core/time/time.ts";
import type { MachineEvent, ModelMachine } from "../../sim/cloud/model-machine.ts";

interface Machines {
  readonly machines: readonly ModelMachine[];
  /** The machines of the fleet without Lastcall, with the same names. */
  readonly twins: readonly ModelMachine[];
}

/**
 * Every place in the fleet by name: its machine as the cloud knows it, with a departure under way
 * as its Departure says, and the machine without Lastcall.
 */
export function fleetNodes(
  { machines, twins }: Machines,
  { nodes, departures }: Pick<FleetView, "nodes" | "departures">,
): readonly BoardNode[] {
  const uids = new Map(nodes.map((node) => [node.name, node.uid]));
  const leaving = new Set(
    departures
      .filter((one) => isDraining(one) && uids.get(one.node.name) === one.node.uid)
      .map((one) => one.node.name),
  );
  const twinOf = new Map(
    twins.map((machine) => [machine.name, { bornAt: machine.bornAt, doing: doingOf(machine) }]),
  );
  return machines
    .map((machine) => {
      const { name, bornAt } = machine;
      const doing = doingOf(machine);
      const isLeaving = doing === "Working" && leaving.has(name);
      return {
        name,
        bornAt,
        doing: isLeaving ? "Leaving" : doing,
        twin: twinOf.get(name),
      } as const;
    })
    .toSorted((a, b) => compareNames(a.name, b.name));
}

function isDraining(departure: Departure): boolean {
  const { phase } = departure.status;
  const isOut = phase === "Preparing" || phase === "Draining" || phase === "Releasing";
  return isOut && isLive(departure);
}

function doingOf({ state, noticedAt }: ModelMachine): DemoMachineState {
  if (state === "Booting" || state === "Gone") return state;
  return state === "Noticed" || noticedAt !== undefined ? "Taken" : "Working";
}

export interface BoardNews {
  readonly at: Instant;
  readonly node: string;
  /** The outcome of a departure; `Noticed` and `Drained` for a node that the cloud preempts. */
  readonly what: string;
  readonly message: string;
}

/** Receives all news in order. */
export type NewsListener = (news: BoardNews) => void;

/** Reports what happens in a fleet, by comparing its states. */
export class FleetNews {
  readonly #phases = new Map<string, string>();
  #count = 0;

  /** How many events of nodes there were: notices, drains before a deadline, ends. */
  count(): number {
    return this.#count;
  }

  /** Reads all departures again and reports the changes of their phases. */
  seeDepartures(departures: readonly Departure[], at: Instant, onNews: NewsListener): void {
    const seen = new Set(departures.map((one) => one.uid));
    for (const uid of this.#phases.keys()) if (!seen.has(uid)) this.#phases.delete(uid);
    for (const departure of departures) {
      const { uid, node, status, noticedAt } = departure;
      const before = this.#phases.get(uid);
      this.#phases.set(uid, status.phase);
      if (before === status.phase || status.message === undefined) continue;
      const what = status.outcome ?? status.phase;
      onNews({ at, node: node.name, message: endSentence(departure), what });
      const isDrained = status.phase === "Releasing" && noticedAt !== undefined;
      if (status.outcome !== undefined || isDrained) this.#count += 1;
    }
  }

  seeCloud({ kind, at, machine, because }: MachineEvent, onNews: NewsListener): void {
    if (kind === "Noticed") {
      const why = because === "Limit" ? "at its 24 hours" : "before its time";
      const message = `${machine.name} is interrupted by the cloud, ${why}.`;
      this.#count += 1;
      onNews({ at, node: machine.name, what: "Noticed", message });
    }
    if (kind === "Registered") {
      const message = `${machine.name} has a new machine.`;
      onNews({ at, node: machine.name, what: "Registered", message });
    }
  }
}

/**
 * How long the outcome of a notice is shown after the machine is off: four seconds for the user.
 */
export const aftermathMs = 80_000;

export interface StoryFacts {
  readonly now: Instant;
  /** How many machines were launched together, and how many of these still run in each fleet. */
  readonly nodes: number;
  readonly nodesLeft: number;
  readonly nodesLeftWithout: number;
  /** When the first of them is 24 h old. */
  readonly limitAt: Instant;
  /** Planned departures that have ended or are under way. */
  readonly departures: number;
  readonly notice: BoardNotice | undefined;
  readonly withLastcall: FleetFigures;
  readonly without: FleetFigures;
}

/**
 * The chapter of the story that the demo has reached, judged by what is on the screen rather than
 * by elapsed time.
 */
export function storyOf(facts: StoryFacts): Story {
  const { now, nodes, nodesLeft, nodesLeftWithout, limitAt, withLastcall, without } = facts;
  if (nodesLeftWithout === 0) return { kind: "Result", withLastcall, without };
  if (now >= limitAt) return { kind: "Limit", nodesLost: without.lostAtOnce, nodesLeft };
  const noticed = noticeStory(facts);
  if (noticed !== undefined) return noticed;
  return facts.departures === 0
    ? { kind: "Together", nodes, limitAt }
    : { kind: "OneByOne", nodes, nodesLeft, limitAt };
}

/**
 * Undefined if there is no notice, or only one for a machine that still runs in the other fleet.
 */
function noticeStory({ now, notice }: StoryFacts): Story | undefined {
  if (notice?.twinPods === undefined) return undefined;
  const { node, goneAt, pods, twinPods } = notice;
  if (goneAt === undefined) return { kind: "Notice", node };
  if (between(goneAt, now) > aftermathMs) return undefined;
  const killed = (of: typeof pods): number => of.filter(({ isKilled }) => isKilled).length;
  return {
    ...{ kind: "NoticeOver", node, pods: pods.length },
    ...{ podsKilled: killed(pods), podsKilledWithout: killed(twinPods) },
  };
}
