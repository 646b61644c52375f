import type { NodeFacts } from "../cluster/node.ts";
import {
  type Departure,
  hasTakenMachine,
  isVoluntary,
  policyNameOf,
} from "../departure/departure.ts";
import { wasReleasedUnnoticed } from "../departure/ledger.ts";
import type { Policy } from "../policy/policy.ts";
import {
  earliest,
  hours,
  type Instant,
  type Millis,
  millis,
  minus,
  minutes,
  plus,
} from "../time/time.ts";
import { heirsOf, type SelectedNodes } from "./policy-heir.ts";

/** A machine that has left and is expected back, but no node has taken its place yet. */
export interface MissingMachine {
  /** The ended departure by which it left. */
  readonly departure: Departure;
  readonly goneAt: Instant;
  /** Whether we released it. Otherwise the cloud took it, or it just disappeared. */
  readonly isReleased: boolean;
  /** Until when it is expected back. After that the fleet counts as smaller. */
  readonly untilAt: Instant;
}

/** Under `undefined` are the nodes of no policy. */
export interface MissingQuestion extends SelectedNodes {
  readonly departures: readonly Departure[];
  readonly at: Instant;
}

/** How long a machine that was released is expected back, unless the policy says otherwise. */
const defaultExpectForMs: Millis = hours(24);

/**
 * How long at most any other machine is: one that the cloud took, or that was released without its
 * group. A group that was made smaller looks the same, and so does a provisioner that has found no
 * need for another machine.
 */
const leastCertainMs: Millis = hours(1);

/** A machine may have been replaced this long before its Node object was deleted. */
const deletedLateMs: Millis = minutes(10);

/** A node that has come, and may have taken the place of a machine. */
interface Arrival {
  readonly name: string;
  readonly at: number;
}

/**
 * The machines of each policy that have left within the time for which they are expected back, less
 * one for each node that has come since, of the same policy or of none. The records of ended
 * departures show what has left, and what had come and left again.
 */
export function missingMachines(
  question: MissingQuestion,
): ReadonlyMap<string, readonly MissingMachine[]> {
  const { policies, nodes, departures, at } = question;
  const missing = new Map<string, readonly MissingMachine[]>();
  if (!departures.some(hasLeft)) return missing;
  const byPolicy = countedDepartures(question);
  const all = [...nodes.values()].flat();
  const there = new Set(all.map(({ uid }) => uid));
  const boots = new Set(all.map(({ bootID }) => bootID));
  let shared: readonly Arrival[] = arrivalsOf(nodes.get(undefined) ?? [], []);
  for (const policy of policies) {
    const own = byPolicy.get(policy.name) ?? [];
    const isCertain = (one: Departure) => policies.some(({ name }) => name === policyNameOf(one));
    // A Node object that is still there has another machine now; a boot that is has another Node.
    const losses = lossesOf(own, { policy, isCertain }).filter(
      ({ departure: { node } }) => !there.has(node.uid) && !(node.bootID && boots.has(node.bootID)),
    );
    if (!losses.some(({ untilAt }) => untilAt > at)) continue;
    const gone = own.filter((departure) => !there.has(uidOf(departure)));
    const came = arrivalsOf(nodes.get(policy.name) ?? [], gone);
    const left = withoutReplaced(losses, { came, shared });
    missing.set(
      policy.name,
      left.missing.filter(({ untilAt }) => untilAt > at),
    );
    shared = left.shared;
  }
  return missing;
}

/** Whether a node has left: with its machine, or alone, where nobody knows about that. */
function hasLeft(departure: Departure): boolean {
  const { phase, reason } = departure.status;
  return hasTakenMachine(departure) || (phase === "Ended" && reason === "NodeGone");
}

/**
 * Whether another tool was removing the node when the departure ended. If the node has gone, nobody
 * knows whether the tool wants another one.
 */
function wasLeftToOthers({ status }: Departure): boolean {
  return status.phase === "Ended" && status.leftTo !== undefined;
}

function uidOf({ node }: Departure): string {
  return node.uid;
}

/** The departures that count for each policy: of a deleted one, those that we have released. */
function countedDepartures(question: MissingQuestion): ReadonlyMap<string, readonly Departure[]> {
  const counted = new Map<string, Departure[]>();
  const isThere = new Set(question.policies.map(({ name }) => name));
  for (const [name, own] of Map.groupBy(question.departures, policyNameOf)) {
    if (name === undefined) continue;
    const lasting = isThere.has(name) ? own : own.filter(isOurs);
    for (const heir of heirsOf(name, question)) {
      counted.set(heir, [...(counted.get(heir) ?? []), ...lasting]);
    }
  }
  return counted;
}

/**
 * The machines that have left, each of them once, by when they were gone, and those of nodes that
 * were left to another tool.
 */
function lossesOf(
  departures: readonly Departure[],
  by: { readonly policy: Policy; readonly isCertain: (departure: Departure) => boolean },
): readonly MissingMachine[] {
  const { policy, isCertain } = by;
  const losses = new Map<string, MissingMachine>();
  const machineOf = byMachine(departures);
  const gone = [...departures.filter(hasLeft), ...departures.filter(wasLeftToOthers)];
  for (const departure of gone) {
    const goneAt = departure.status.endedAt;
    if (goneAt === undefined) continue;
    const forMs = expectedForMs(departure, policy);
    const mostMs = isCertain(departure) ? forMs : millis(Math.min(forMs, leastCertainMs));
    const untilAt = plus(goneAt, mostMs);
    if (untilAt <= goneAt) continue;
    const machine = `${uidOf(departure)} ${machineOf(departure)}`;
    const known = losses.get(machine);
    // Of two departures, the one that released it knows more than the one that lost its Node.
    if (known !== undefined && (known.untilAt > untilAt || !hasLeft(departure))) continue;
    const isReleased = isOurs(departure);
    losses.set(machine, { departure, goneAt, isReleased, untilAt });
  }
  return [...losses.values()].sort((a, b) => a.goneAt - b.goneAt);
}

/**
 * Names the machine of each departure by its boot, since a Node may be registered again. One that
 * was requested by hand may name no boot: it means that of its node's other departures.
 */
function byMachine(departures: readonly Departure[]): (departure: Departure) => string {
  const boots = new Map<string, string>();
  for (const { node } of departures) if (node.bootID) boots.set(node.uid, node.bootID);
  return ({ node }) => node.bootID || (boots.get(node.uid) ?? node.uid);
}

function expectedForMs(departure: Departure, { instance, replacement }: Policy): Millis {
  const { expectForMs = defaultExpectForMs } = replacement;
  const mode = departure.status.machine?.mode ?? instance.release;
  if (isOurs(departure) && mode === "Recreate") return expectForMs;
  // Its group has become smaller with it.
  if (mode === "Delete") return millis(0);
  return millis(Math.min(expectForMs, leastCertainMs));
}

/** Whether we have released it, or would have: a notice that came after that took nothing. */
function isOurs({ cause, noticedAt, status }: Departure): boolean {
  const isUnnoticed = isVoluntary(cause) && noticedAt === undefined;
  return (isUnnoticed && status.startedAt !== undefined) || wasReleasedUnnoticed(status);
}

/**
 * From when on a new node may be the one that replaces the machine. A notice may be acted on only
 * when a leader comes, long after the cloud has taken the machine.
 */
function leftFrom({ departure, goneAt }: MissingMachine): number {
  const { status, noticedAt } = departure;
  return earliest(status.startedAt, noticedAt) ?? minus(goneAt, deletedLateMs);
}

/** How long after its launch a machine registers its Node at most. */
const registersWithinMs = minutes(15);

/**
 * When the machines came whose nodes are there, or have left since, each by its boot: one whose
 * Node was registered again came with the first. If no departure of a node that has left has
 * recorded it, then before the first of these was made: just before, unless it was made by a person
 * or by a notice.
 */
function arrivalsOf(nodes: readonly NodeFacts[], gone: readonly Departure[]): readonly Arrival[] {
  const first = new Map<string, Arrival>();
  const came = (machine: string, name: string, at: number | undefined): void => {
    if (at !== undefined && at < (first.get(machine)?.at ?? Number.POSITIVE_INFINITY))
      first.set(machine, { name, at });
  };
  for (const node of nodes) came(node.bootID || node.uid, node.name, cameAt(node));
  const machineOf = byMachine(gone);
  for (const departure of gone) {
    const { node, status, createdAt } = departure;
    came(machineOf(departure), node.name, status.nodeCreatedAt ?? createdAt);
  }
  return [...first.values()];
}

/** A Node that is registered again under its name, of a machine that was there, is no arrival. */
function cameAt({ createdAt, instanceBornAt }: NodeFacts): number | undefined {
  if (createdAt === undefined || instanceBornAt === undefined) return createdAt;
  return createdAt - instanceBornAt > registersWithinMs ? instanceBornAt : createdAt;
}

/**
 * Each arrival takes the place of a machine that was leaving when it came, and was still expected
 * back: of the one that had its name, since groups recreate machines under their names, and
 * otherwise of the one that was gone first. A machine that another tool has removed is not missing,
 * and has no heir but that of its name. One that is no longer expected has had its arrivals: these
 * do not count for a machine that left at the same time, and is gone only now.
 */
function withoutReplaced(
  losses: readonly MissingMachine[],
  arrivals: { readonly came: readonly Arrival[]; readonly shared: readonly Arrival[] },
): { readonly missing: readonly MissingMachine[]; readonly shared: readonly Arrival[] } {
  const all = [...arrivals.came, ...arrivals.shared].sort((a, b) => a.at - b.at);
  const unowned = new Set(arrivals.shared);
  const inTurn = losses.toSorted((a, b) => leftFrom(a) - leftFrom(b));
  let next = 0;
  const replaced = new Set<MissingMachine>();
  /** Those that are leaving or gone, by when they are gone. */
  let awaited: MissingMachine[] = [];
  const shared: Arrival[] = [];
  for (const arrival of all) {
    const { name, at } = arrival;
    for (; next < inTurn.length && leftFrom(inTurn[next] as MissingMachine) < at; next += 1) {
      const loss = inTurn[next] as MissingMachine;
      const place = awaited.findLastIndex(({ goneAt }) => goneAt <= loss.goneAt) + 1;
      awaited.splice(place, 0, loss);
    }
    awaited = awaited.filter(({ untilAt }) => at < untilAt);
    const former =
      awaited.find(({ departure }) => departure.node.name === name) ??
      awaited.find(({ departure }) => hasLeft(departure));
    if (former !== undefined) {
      replaced.add(former);
      awaited.splice(awaited.indexOf(former), 1);
    } else if (unowned.has(arrival)) shared.push(arrival);
  }
  const missing = losses.filter((one) => hasLeft(one.departure) && !replaced.has(one));
  return { missing, shared };
}
