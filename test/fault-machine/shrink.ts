import type { Fault, World } from "./world.ts";

/**
 * The smallest world that a greedy search finds in which `isBroken` still holds: fewer faults,
 * nodes, pods and replicas, shorter faults and fewer hours.
 */
export async function shrinkWorld(
  world: World,
  isBroken: (smaller: World) => Promise<boolean>,
  onStep: (smaller: World) => void = () => {},
): Promise<World> {
  let best = world;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smallerWorlds(best)) {
      if (!(await isBroken(candidate))) continue;
      best = candidate;
      isSmaller = true;
      onStep(best);
      break;
    }
  }
  return best;
}

/** Worlds with one thing less, those that save most first. */
function* smallerWorlds(world: World): Generator<World> {
  const { faults, nodes, workloads, hours, policy, replicas } = world;
  if (hours > 2) yield { ...world, hours: Math.ceil(hours / 2) };
  const half = Math.ceil(faults.length / 2);
  if (faults.length > 2) {
    yield { ...world, faults: faults.slice(0, half) };
    yield { ...world, faults: faults.slice(half) };
  }
  for (const index of faults.keys()) yield { ...world, faults: faults.toSpliced(index, 1) };
  if (nodes.length > 3) yield { ...world, nodes: nodes.slice(0, Math.ceil(nodes.length / 2)) };
  for (const index of nodes.keys()) {
    if (nodes.length > 1) yield { ...world, nodes: nodes.toSpliced(index, 1) };
  }
  for (const index of workloads.keys())
    yield { ...world, workloads: workloads.toSpliced(index, 1) };
  if (replicas > 1) yield { ...world, replicas: 1 };
  if (hours > 1) yield { ...world, hours: hours - 1 };
  for (const [index, one] of workloads.entries()) {
    if (one.replicas > 1)
      yield { ...world, workloads: workloads.with(index, { ...one, replicas: 1 }) };
  }
  for (const field of ["windows", "budgets", "replacement"] as const) {
    const { [field]: removed, ...rest } = policy;
    if (removed !== undefined) yield { ...world, policy: rest };
  }
  for (const [index, fault] of faults.entries()) {
    for (const simpler of simplerFaults(fault))
      yield { ...world, faults: faults.with(index, simpler) };
  }
}

function* simplerFaults(fault: Fault): Generator<Fault> {
  const { lasts, start } = fault;
  if (lasts === "ever") yield { ...fault, lasts: 120 };
  else if (lasts > 10) yield { ...fault, lasts: Math.floor(lasts / 2) };
  if ("phase" in start && start.afterSeconds > 0)
    yield { ...fault, start: { ...start, afterSeconds: 0 } };
  if ("phase" in start && start.nth > 1) yield { ...fault, start: { ...start, nth: 1 } };
}
