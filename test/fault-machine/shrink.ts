import type { Fault, World } from "./world.ts";

interface ShrinkOptions {
  readonly isBroken: (smaller: World) => Promise<boolean>;
  /** True once there is no more time: the smallest world so far is the result. */
  readonly isOver?: () => boolean;
  readonly onStep?: (smaller: World) => void;
}

/**
 * The smallest world that a greedy search finds in which the rule is still broken: fewer faults,
 * nodes, pods and replicas, shorter faults and fewer hours. Each kind of change goes on as long as
 * it helps; a round in which none did is the last.
 */
export async function shrinkWorld(world: World, options: ShrinkOptions): Promise<World> {
  const { isOver = () => false } = options;
  let best = world;
  for (let before: World | undefined; before !== best && !isOver(); ) {
    before = best;
    for (const smaller of changes) best = await asFarAsItHelps(best, smaller, options);
  }
  return best;
}

async function asFarAsItHelps(
  world: World,
  smaller: (world: World) => Iterable<World>,
  { isBroken, isOver = () => false, onStep }: ShrinkOptions,
): Promise<World> {
  let best = world;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smaller(best)) {
      if (isOver()) return best;
      if (!(await isBroken(candidate))) continue;
      best = candidate;
      isSmaller = true;
      onStep?.(best);
      break;
    }
  }
  return best;
}

/** Kinds of changes, those that save most first. */
const changes: readonly ((world: World) => Iterable<World>)[] = [
  fewerFaults,
  fewerHours,
  fewerNodes,
  fewerPods,
  simplerPolicies,
  simplerWorldFaults,
];

function* fewerFaults(world: World): Generator<World> {
  const { faults } = world;
  // Most rules are broken by one fault alone.
  if (faults.length > 2) for (const fault of faults) yield { ...world, faults: [fault] };
  for (const index of faults.keys()) yield { ...world, faults: faults.toSpliced(index, 1) };
}

function* fewerHours(world: World): Generator<World> {
  const { hours } = world;
  if (hours > 2) yield { ...world, hours: Math.ceil(hours / 2) };
  if (hours > 1) yield { ...world, hours: hours - 1 };
}

function* fewerNodes(world: World): Generator<World> {
  const { nodes, replicas } = world;
  if (nodes.length > 3) yield { ...world, nodes: nodes.slice(0, Math.ceil(nodes.length / 2)) };
  for (const index of nodes.keys()) {
    if (nodes.length > 1) yield { ...world, nodes: nodes.toSpliced(index, 1) };
  }
  if (replicas > 1) yield { ...world, replicas: 1 };
}

function* fewerPods(world: World): Generator<World> {
  const { workloads } = world;
  for (const index of workloads.keys()) {
    yield { ...world, workloads: workloads.toSpliced(index, 1) };
  }
  for (const [index, one] of workloads.entries()) {
    if (one.replicas > 1)
      yield { ...world, workloads: workloads.with(index, { ...one, replicas: 1 }) };
  }
}

function* simplerPolicies(world: World): Generator<World> {
  const { policy } = world;
  for (const field of ["windows", "budgets", "replacement"] as const) {
    const { [field]: removed, ...rest } = policy;
    if (removed !== undefined) yield { ...world, policy: rest };
  }
  if ((world.latencyMs ?? 0) > 0) yield { ...world, latencyMs: 0 };
}

function* simplerWorldFaults(world: World): Generator<World> {
  const { faults } = world;
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
