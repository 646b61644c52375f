import type { ModelObject } from "../../src/sim/api/store/object-store.ts";
import type { Checker } from "./checker.ts";
import type { TraceEvent } from "./trace.ts";
import { marks, View } from "./view.ts";
import type { PolicySpec, World } from "./world.ts";

export const policy: PolicySpec = {
  lifetime: { max: "3h", reserve: "20m" },
  spacing: { mode: "Late", min: "10m" },
  budgets: [{ nodes: 1 }],
  drain: { timeout: "5m", onTimeout: "RollBack" },
  instance: { release: "None", awaitMachine: "10m" },
};

const world: World = {
  ...{ seed: 1, hours: 4, replicas: 1, nodes: [], workloads: [], policy, faults: [] },
  machines: { bootSeconds: 50, recreateSeconds: 10, stopSeconds: 20 },
};

export const minute = 60_000;
export const hour = 60 * minute;

/** What a checker says of a trace. */
export function verdictOf({ start }: Checker, trace: readonly TraceEvent[]): readonly string[] {
  const view = new View(world);
  const judge = start();
  return trace.flatMap((event) => {
    view.apply(event);
    return judge(event, view) ?? [];
  });
}

export function change(at: number, storage: string, object: object, previous?: object): TraceEvent {
  const type = previous === undefined ? "ADDED" : "MODIFIED";
  const objects = { object: object as ModelObject, previous: previous as ModelObject | undefined };
  return { kind: "Change", at, storage, type, ...objects };
}

export function policyIs(at: number, spec: PolicySpec): TraceEvent {
  return change(at, "departurepolicies.lastcall.dev", { metadata: { name: "spot" }, spec });
}

/** The default selector of a policy selects nodes with it. */
const spot = { "cloud.google.com/gke-preemptible": "true" } as const;

export function node(name: string, ready: "True" | "False", departure?: string): object {
  const annotations = departure === undefined ? {} : { [marks.departure]: departure };
  return {
    metadata: { name, uid: `uid-${name}`, annotations, labels: spot },
    spec: { unschedulable: departure !== undefined },
    status: { conditions: [{ type: "Ready", status: ready }] },
  };
}

export function machine(at: number, name: string, bornAt = at): TraceEvent {
  const its = { name, id: `id-${name}`, bornAt, because: undefined };
  return { kind: "Machine", at, what: "Registered", ...its };
}

export function departure(over: object = {}): object {
  const spec = { node: { name: "n1", uid: "uid-n1" }, cause: "Planned", policy: "spot" };
  return { metadata: { name: "d1", uid: "uid-d1" }, spec, ...over };
}

/** n1 starts at two hours, although others are not ready; something was edited just before. */
export function startBeside(
  sick: readonly string[],
  edits: readonly TraceEvent[] = [],
): readonly TraceEvent[] {
  const at = 2 * hour;
  const [open, marked] = [node("n1", "True"), node("n1", "True", "d1")];
  const path = "/api/v1/nodes/n1";
  return [
    policyIs(0, policy),
    ...["n1", ...sick].map((name) => machine(0, name)),
    ...[open, ...sick.map((name) => node(name, "False"))].map((one) => change(0, "nodes", one)),
    change(at - minute, "departures.lastcall.dev", departure()),
    ...edits,
    change(at, "nodes", marked, open),
    {
      ...{ kind: "Request", process: "controller-0.1", sentAt: at, at, method: "PATCH", path },
      ...{ body: undefined, status: 200, answer: "Arrived" },
    },
  ];
}
