import type { NodeFacts } from "../cluster/node.ts";
import type { Snapshot } from "../departure/decision.ts";
import { type Policy, selectPolicy } from "../policy/policy.ts";
import { inEnglish, type Saying } from "../reason/english.ts";
import { type Instant, plus } from "../time/time.ts";
import { amountOf } from "./budget.ts";
import type { GateHold } from "./gate.ts";
import { type MissingMachine, type MissingQuestion, missingMachines } from "./missing-machine.ts";

/** How the nodes of a policy are, compared with how they should be. */
export interface FleetHealth {
  /** Machines that have left and are expected back, the first one first. */
  readonly missing: readonly MissingMachine[];
  /** Holds every voluntary departure of the policy; undefined if the fleet is healthy. */
  readonly hold: GateHold | undefined;
}

export const healthy: FleetHealth = { missing: [], hold: undefined };

/** The nodes of one policy, or of the cluster. */
interface NodeTally {
  readonly nodes: number;
  readonly notReady: number;
}

interface FleetQuestion extends MissingQuestion {
  /** Why nodes, policies and departures may be others by now; see `unheardOf`. */
  readonly unheard?: string | undefined;
}

/** The health of the nodes of each policy. */
export function fleetHealth(question: FleetQuestion): ReadonlyMap<string, FleetHealth> {
  const { policies, nodes, unheard, at } = question;
  const missing = missingMachines(question);
  const tallies = new Map([...nodes].map(([policy, some]) => [policy, tallyOf(some)]));
  const cluster = [...tallies.values()].reduce(sumOfTallies, none);
  return new Map(
    policies.map((policy) => {
      const own = missing.get(policy.name) ?? [];
      const tally = tallies.get(policy.name) ?? none;
      const hold =
        unheard === undefined
          ? unhealthyHold({ policy, tally, cluster, missing: own, at })
          : held(unheard);
      return [policy.name, { missing: own, hold }];
    }),
  );
}

/** The same for a snapshot in which it is not known yet which policy selects which node. */
export function readFleetHealth(
  {
    policies,
    nodes,
    departures,
    unheard,
  }: Pick<Snapshot, "policies" | "nodes" | "departures" | "unheard">,
  at: Instant,
): ReadonlyMap<string, FleetHealth> {
  const byPolicy = Map.groupBy(nodes, (node) => selectPolicy(node, policies)?.policy.name);
  return fleetHealth({ policies, nodes: byPolicy, departures, unheard, at });
}

const none: NodeTally = { nodes: 0, notReady: 0 };

function tallyOf(nodes: readonly NodeFacts[]): NodeTally {
  let notReady = 0;
  for (const { ready } of nodes) if (!ready) notReady += 1;
  return { nodes: nodes.length, notReady };
}

function sumOfTallies(a: NodeTally, b: NodeTally): NodeTally {
  return { nodes: a.nodes + b.nodes, notReady: a.notReady + b.notReady };
}

/**
 * The share of nodes from which a fleet counts as unhealthy, and how many there have to be. Source:
 * kube-controller-manager, `--unhealthy-zone-threshold`, and ComputeZoneState in kubernetes
 * `pkg/controller/nodelifecycle/node_lifecycle_controller.go`.
 */
const defaultMaxUnhealthy = 0.55;
const fewestUnhealthy = 3;

/** The share of the machines that may be late at once if no budget is smaller. */
const mostLateShare = 0.1;

interface HealthQuestion {
  readonly policy: Policy;
  readonly tally: NodeTally;
  /** All nodes of the cluster. */
  readonly cluster: NodeTally;
  readonly missing: readonly MissingMachine[];
  readonly at: Instant;
}

/**
 * Why no voluntary departure of a policy may start: too much of the fleet is not Ready, as when the
 * control plane has lost the kubelets and the workloads still run, or machines that have left are
 * not replaced, as in a stock-out. What is left would otherwise be released one by one. No deadline
 * overrides it.
 */
export function unhealthyHold(question: HealthQuestion): GateHold | undefined {
  const { policy, tally, cluster } = question;
  const most = policy.gates.maxUnhealthy ?? defaultMaxUnhealthy;
  if (isDisrupted(tally, most))
    return held({ says: "limit.PolicyNotReady", ...tally, policy: policy.name });
  const isWhole = cluster.nodes > 1 && cluster.notReady === cluster.nodes;
  if (isWhole || isDisrupted(cluster, most)) {
    return held({ says: "limit.ClusterNotReady", ...cluster });
  }
  return lateHold(question);
}

function isDisrupted({ nodes, notReady }: NodeTally, most: number): boolean {
  return notReady >= fewestUnhealthy && notReady >= nodes * most;
}

/** A machine is late if it has not been replaced within `replacement.timeout`. */
function lateHold({ policy, tally, missing, at }: HealthQuestion): GateHold | undefined {
  const late = missing.filter(({ goneAt }) => plus(goneAt, policy.replacement.timeoutMs) <= at);
  const [first] = late;
  const expected = tally.nodes + missing.length;
  if (first === undefined || late.length < mostLate(policy, expected)) return undefined;
  const { departure, goneAt: sinceAt } = first;
  const more = late.length === 1 ? undefined : late.length - 1;
  return held({ says: "limit.NotReplaced", node: departure.node.name, sinceAt, more });
}

function mostLate({ budgets }: Policy, expected: number): number {
  const limits = budgets.flatMap((budget) =>
    budget.kind === "Nodes" ? [amountOf(budget.nodes, expected)] : [],
  );
  return Math.max(1, Math.min(Math.floor(expected * mostLateShare), ...limits));
}

function held(said: Saying): GateHold {
  return { kind: "Held", reason: "FleetUnhealthy", detail: inEnglish(said) };
}
