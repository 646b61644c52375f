import type { FleetView } from "../../contracts/fleet.ts";
import { type Departure, isLive } from "../../core/departure/departure.ts";
import { windowState } from "../../core/limits/windows.ts";
import { explainForecast } from "../../core/plan/explain-plan.ts";
import type { FleetPlan, PlannedDeparture } from "../../core/plan/fleet-plan.ts";
import { planFleet } from "../../core/plan/plan.ts";
import { type Instant, plus } from "../../core/time/time.ts";
import type { ModelMachine } from "../../sim/cloud/model-machine.ts";
import { demoNoticeMs } from "../../sim/demo/demo-world.ts";
import type { BoardNode, BoardState, BoardTwin, Doing } from "./board-state.ts";

/**
 * Every machine with what it is doing, and where each policy stands: the cloud knows the machines,
 * the Departures what becomes of them, and core's plan why each leaves when it does, the same plan
 * as the controller acts upon.
 */
export function fleetPicture(
  { machines, twins }: Machines,
  view: FleetView & { readonly audits: ReadonlyMap<string, string> },
  now: Instant,
): Pick<BoardState, "nodes" | "policies"> {
  const plan = planFleet({ ...view, at: now });
  const policies = plan.policies.map((one) => ({
    name: one.policy.name,
    windows: windowState(one.policy.windows, now),
    forecast: explainForecast(one),
    audit: view.audits.get(one.policy.name),
  }));
  return { policies, nodes: boardNodes({ machines, twins }, view, plan) };
}

interface Machines {
  readonly machines: readonly ModelMachine[];
  /** Those of the fleet without Lastcall, under the same names. */
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
    .toSorted((a, b) => compare(a.zone, b.zone) || compare(a.name, b.name));
}

/** Nothing releases a machine there: it is in service, or on its way out or in. */
function boardTwin({ state, bornAt }: ModelMachine): BoardTwin {
  if (state === "Noticed") return { bornAt, doing: "Taken" };
  return { bornAt, doing: state === "Gone" || state === "Booting" ? state : "Working" };
}

function doingOf(
  machine: ModelMachine,
  departure: Departure | undefined,
  planned: PlannedDeparture | undefined,
): Doing {
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
      return { kind: "Held", why: reason ?? "Held" };
    default:
      return scheduled(departure, planned);
  }
}

function scheduled(departure: Departure, planned: PlannedDeparture | undefined): Doing {
  const { departAt, deadlineAt } = departure;
  if (departAt === undefined) return { kind: "Working" };
  const why = planned?.reason ?? departure.status.reason ?? departure.cause;
  return { kind: "Scheduled", departAt, deadlineAt, why };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
