import type {
  BoardNews,
  BoardNode,
  BoardNotice,
  BoardPolicy,
  BoardTwin,
  DemoPicture,
  NodeActivity,
  Story,
} from "../../board/demo-picture.ts";
import { endSentence } from "../../board/outcome/ended-departures.ts";
import type { FleetFigures } from "../../board/stream.ts";
import type { FleetView } from "../../contracts/cluster.ts";
import { compareNames } from "../../core/cluster/name-order.ts";
import { type Departure, isLive } from "../../core/departure/departure.ts";
import { windowState } from "../../core/limits/windows.ts";
import { explainForecast } from "../../core/plan/explain-forecast.ts";
import type { FleetPlan, PlannedDeparture } from "../../core/plan/fleet-plan.ts";
import { planFleet } from "../../core/plan/plan.ts";
import { between, type Instant, plus } from "../../core/time/time.ts";
import type { MachineEvent, ModelMachine } from "../../sim/cloud/model-machine.ts";
import { demoNoticeMs } from "../../sim/demo/demo-world.ts";

/**
 * Every machine with its state, and the status of each policy: machines come from the cloud, their
 * states from the Departures, and the reasons from core's plan, the same one that the controller
 * acts on.
 */
export function fleetPicture(
  { machines, twins }: Machines,
  view: FleetView & { readonly audits: ReadonlyMap<string, string> },
  now: Instant,
): Pick<DemoPicture, "nodes" | "policies"> {
  const plan = planFleet({ ...view, at: now });
  const planned: readonly BoardPolicy[] = plan.policies.map((one) => ({
    name: one.policy.name,
    windows: windowState(one.policy.windows, now),
    forecast: explainForecast(one),
    audit: view.audits.get(one.policy.name),
  }));
  const broken = plan.bad.map(({ policy: { name, problem }, nodes }) => ({
    ...{ name, problem, forecast: heldText(nodes), windows: { state: "Shut" as const } },
  }));
  const policies = [...planned, ...broken].toSorted((a, b) => compareNames(a.name, b.name));
  return { policies, nodes: boardNodes({ machines, twins }, view, plan) };
}

function heldText(nodes: number): string {
  return `Cannot be read: it holds back ${nodes === 1 ? "1 node" : `${nodes} nodes`}`;
}

interface Machines {
  readonly machines: readonly ModelMachine[];
  /** The machines of the fleet without Lastcall, with the same names. */
  readonly twins: readonly ModelMachine[];
}

function boardNodes(
  { machines, twins }: Machines,
  view: FleetView,
  plan: FleetPlan,
): readonly BoardNode[] {
  const planned = new Map(
    plan.policies.flatMap(({ departures }) => departures.map((one) => [one.node.name, one])),
  );
  const uids = new Map(view.nodes.map((node) => [node.name, node.uid]));
  const live = new Map(
    view.departures
      .filter((one) => isLive(one) && uids.get(one.node.name) === one.node.uid)
      .map((one) => [one.node.name, one]),
  );
  const twinOf = new Map(twins.map((machine) => [machine.name, boardTwin(machine)]));
  return machines
    .map((machine) => ({
      name: machine.name,
      zone: machine.group.zone,
      bornAt: machine.bornAt,
      doing: doingOf(machine, live.get(machine.name), planned.get(machine.name)),
      twin: twinOf.get(machine.name),
    }))
    .toSorted((a, b) => compareNames(a.zone, b.zone) || compareNames(a.name, b.name));
}

/** Nothing releases a machine there: it is in service, starting or stopping. */
function boardTwin({ state, bornAt }: ModelMachine): BoardTwin {
  if (state === "Noticed") return { bornAt, doing: "Taken" };
  return { bornAt, doing: state === "Gone" || state === "Booting" ? state : "Working" };
}

function doingOf(
  machine: ModelMachine,
  departure: Departure | undefined,
  planned: PlannedDeparture | undefined,
): NodeActivity {
  if (machine.state === "Booting" || machine.state === "Gone") return { kind: machine.state };
  if (machine.noticedAt !== undefined) {
    const podsLeft = departure?.status.drain?.left;
    return { kind: "Taken", deadlineAt: plus(machine.noticedAt, demoNoticeMs), podsLeft };
  }
  if (departure === undefined) return { kind: "Working" };
  const { phase, reason, drain } = departure.status;
  switch (phase) {
    case "Preparing":
    case "Draining":
      return {
        kind: "Draining",
        podsLeft: drain?.left ?? 0,
        podsTotal: drain?.total ?? 0,
        blocked: drain?.blocked ?? 0,
      };
    case "Releasing":
    case "RollingBack":
      return { kind: phase };
    case "Held":
      return { kind: "Held", why: reason };
    default:
      return scheduled(departure, planned);
  }
}

function scheduled(departure: Departure, planned: PlannedDeparture | undefined): NodeActivity {
  const { departAt, deadlineAt } = departure;
  if (departAt === undefined) return { kind: "Working" };
  const why = planned?.reason ?? departure.status.reason ?? "Requested";
  return { kind: "Scheduled", departAt, deadlineAt, why };
}

/** How many events are kept for the board. */
const keptNews = 20;

/** Receives all news in order. */
export type NewsListener = (news: BoardNews) => void;

/** Reports what happens in a fleet, by comparing its states. */
export class FleetNews {
  readonly #phases = new Map<string, string>();
  #recent: readonly BoardNews[] = [];
  #count = 0;

  /** The number of events for the board so far. */
  count(): number {
    return this.#count;
  }

  /** The latest events of nodes, newest first: notices, drains before a deadline, ends. */
  recent(): readonly BoardNews[] {
    return this.#recent;
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
      const news = { at, node: node.name, message: endSentence(departure) };
      onNews({ ...news, what: status.outcome ?? status.phase });
      const isDrained = status.phase === "Releasing" && noticedAt !== undefined;
      if (status.outcome !== undefined) this.#keep({ ...news, what: status.outcome });
      else if (isDrained) this.#keep({ ...news, what: "Drained" });
    }
  }

  seeCloud({ kind, at, machine, because }: MachineEvent, onNews: NewsListener): void {
    if (kind === "Noticed") {
      const why = because === "Limit" ? "at its 24 hours" : "before its time";
      const message = `${machine.name} is interrupted by the cloud, ${why}.`;
      const news = { at, node: machine.name, what: "Noticed", message };
      this.#keep(news);
      onNews(news);
    }
    if (kind === "Registered") {
      const message = `${machine.name} has a new machine.`;
      onNews({ at, node: machine.name, what: "Registered", message });
    }
  }

  #keep(news: BoardNews): void {
    this.#count += 1;
    this.#recent = [news, ...this.#recent].slice(0, keptNews);
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
