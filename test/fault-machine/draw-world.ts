import { Draw } from "./draw.ts";
import { faultTable } from "./fault-table.ts";
import type { Fault, FaultDuration, FaultStart, PolicySpec, Workload, World } from "./world.ts";

/** How many kinds of faults one world has at most. */
const kindsMost = 4;

/**
 * The world of a seed. Each has its own few kinds of faults and none of the others (swarm testing,
 * Groce et al. 2012): a fault that is always there hides what others do.
 */
export function drawWorld(seed: number, kinds: readonly string[] = Object.keys(faultTable)): World {
  const draw = new Draw(seed);
  const count = draw.pick(1, 2, 2, 3, 4, 5, 6, 8);
  const isOneAge = draw.chance(0.4);
  const age = draw.between(0, 60);
  const base = {
    seed,
    hours: draw.pick(4, 5, 6, 8),
    nodes: Array.from({ length: count }, (_, index) => ({
      zone: "abc"[index % 3] as string,
      ageMinutes: isOneAge ? age : draw.between(0, 90),
    })),
    policy: drawPolicy(draw, count),
    workloads: drawWorkloads(draw, count),
    replicas: draw.pick(1, 1, 2),
    latencyMs: draw.pick(0, 0, 20, 400),
    machines: {
      bootSeconds: draw.pick(20, 50, 120),
      recreateSeconds: draw.pick(5, 10, 60),
      stopSeconds: draw.pick(5, 20, 90),
    },
  };
  const chosen = draw.some(kinds, draw.between(1, kindsMost));
  const faults = chosen.flatMap((kind) =>
    Array.from({ length: draw.pick(1, 1, 2, 3) }, () => drawFault(kind, { draw, world: base })),
  );
  return { ...base, faults: draw.chance(beginTogether) ? together(faults) : faults };
}

/** In so many worlds all faults begin with the first: each is met while the others last. */
const beginTogether = 0.25;

function together(faults: readonly Fault[]): readonly Fault[] {
  return faults.map((fault) => ({ ...fault, start: faults[0]?.start ?? fault.start }));
}

type Fleet = Omit<World, "faults">;

function drawFault(kind: string, { draw, world }: { draw: Draw; world: Fleet }): Fault {
  const row = faultTable[kind];
  if (row === undefined) throw new Error(`no fault is named ${kind}`);
  return {
    kind,
    start: drawStart(draw, world.hours),
    lasts: drawDuration(draw),
    with: row.draw({ draw, nodes: world.nodes.length }),
  };
}

/** Half of the faults begin in the middle of a departure. */
function drawStart(draw: Draw, hours: number): FaultStart {
  if (draw.chance(0.5)) return { minute: draw.between(0, hours * 60 - 30) };
  return {
    phase: draw.pick("Preparing", "Draining", "Draining", "Releasing", "RollingBack", "Ended"),
    nth: draw.between(1, 3),
    afterSeconds: draw.pick(0, 0, 1, 5, 20, 60),
  };
}

/** A moment, longer than each single request, longer than every timeout, hours, for ever. */
function drawDuration(draw: Draw): FaultDuration {
  return draw.pick<FaultDuration>(
    ...[0, 0.05, 1.5, draw.between(6, 12), draw.between(20, 45), 120, "ever" as const],
  );
}

function drawPolicy(draw: Draw, count: number): PolicySpec {
  const budget = draw.pick(undefined, 1, 1, 2);
  const window = draw.pick(undefined, undefined, undefined, "Allow", "Deny");
  return {
    lifetime: { max: draw.pick("2h", "150m", "3h"), reserve: draw.pick("10m", "20m", "30m") },
    spacing: { mode: draw.pick("Late", "Late", "Even"), min: draw.pick("3m", "5m", "10m") },
    ...(budget === undefined || budget > count ? {} : { budgets: [{ nodes: budget }] }),
    ...(window === "Allow" ? { windows: [daily("open", "Allow", ["00:30", "04:00"])] } : {}),
    ...(window === "Deny" ? { windows: [daily("busy", "Deny", ["02:00", "03:30"])] } : {}),
    ...(draw.chance(0.15) ? { replacement: { when: "BeforeDrain", timeout: "5m" } } : {}),
    drain: {
      timeout: draw.pick("2m", "5m", "5m"),
      onTimeout: draw.pick("RollBack", "RollBack", "Proceed", "Wait"),
    },
    instance: {
      release: draw.pick("Recreate", "Recreate", "Recreate", "None"),
      awaitMachine: "10m",
    },
  };
}

function daily(
  name: string,
  type: "Allow" | "Deny",
  [start, end]: readonly [string, string],
): NonNullable<PolicySpec["windows"]>[number] {
  return { name, type, timeZone: "UTC", start, end };
}

function drawWorkloads(draw: Draw, count: number): readonly Workload[] {
  const usual = Array.from({ length: draw.between(1, 3) }, (_, index) =>
    drawWorkload(draw, { name: `app${index}`, count }),
  );
  // An awkward one in a third of the worlds: it would hide other faults in all of them.
  if (!draw.chance(0.33)) return usual;
  const awkward: Partial<Workload> = draw.pick<Partial<Workload>>(
    { graceSeconds: 7200, exitSeconds: "never" },
    { maxUnavailable: 0 },
    { doNotDisturb: true },
    { finalizer: true },
    { kind: "Bare" },
    { zone: "a" },
  );
  return [...usual, { ...drawWorkload(draw, { name: "awkward", count }), replicas: 1, ...awkward }];
}

function drawWorkload(draw: Draw, { name, count }: { name: string; count: number }): Workload {
  return {
    name,
    kind: draw.pick("Deployment", "Deployment", "StatefulSet"),
    replicas: draw.between(1, count + 2),
    cpu: draw.pick("100m", "250m", "500m"),
    graceSeconds: draw.pick(5, 30, 60, 300),
    exitSeconds: draw.pick<number | "never">(1, 5, 20, 45, "never"),
    ...(draw.chance(0.6) ? { maxUnavailable: 1 } : {}),
  };
}
