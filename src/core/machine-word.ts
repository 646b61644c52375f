import { type Cause, type Departure, isLive, isNoticed } from "./departure.ts";
import { isUnderWay } from "./departure-index.ts";
import { parseProviderId } from "./identity.ts";
import type { NodeFacts } from "./node.ts";
import type { NodesSeen } from "./node-notice.ts";
import { actFromAt, type Notice } from "./notice.ts";
import { type ForcingWord, type NoticeCall, noticeOrder } from "./notice-call.ts";
import { selectPolicy } from "./selector.ts";
import { earlier, hours, type Instant, type Millis, minutes, plus } from "./time.ts";

/** The cloud's word about one machine of the fleet, heard outside the cluster. */
export interface MachineWord {
  /** A whole providerID, or its last part where the cloud never gives it twice: `i-0abc`. */
  readonly machine: string;
  /** Its `noticedAt` is the instant of the event in the cloud's time. */
  readonly notice: Notice;
}

export type WordMeaning =
  | NoticeCall
  /** A departure of the machine stands that says no less, or stood until the machine was gone. */
  | { readonly kind: "Known" }
  /** No node is this machine; one that bears its name has a younger machine behind it. */
  | { readonly kind: "NoNode" }
  /** The machine's node falls under no policy. */
  | { readonly kind: "NotOwned" }
  /** It is true, and its time is not near (`actFromAt`). */
  | { readonly kind: "TooEarly" }
  /** Its time is long past. */
  | { readonly kind: "Stale" };

/** After its deadline a machine is gone, or was started again and the word is of its last life. */
const staleAfterMs: Millis = minutes(5);

/** What names no deadline is true for as long as a lifecycle hook waits where nobody says how long. */
const trueForMs: Millis = hours(1);

/**
 * What a word calls for. The same event by two ways is one departure: where one stands, the earlier
 * deadline counts. What a policy may ignore (a rebalance, maintenance) leaves a planned departure as
 * it was and gets one of its own.
 */
export function meaningOf({ machine, notice }: MachineWord, seen: NodesSeen): WordMeaning {
  if (isStale(notice, seen.at)) return { kind: "Stale" };
  const node = machinesOf(seen.nodes).get(machine);
  if (node === undefined || isAnothers(notice, node)) return { kind: "NoNode" };
  if (selectPolicy(node, seen.policies) === undefined) return { kind: "NotOwned" };
  if ((actFromAt(notice) ?? seen.at) > seen.at) return { kind: "TooEarly" };
  const source = `${notice.source}/${notice.eventId}`;
  const former = departuresByNode(seen.departures).get(node.uid) ?? [];
  if (former.some((one) => isDealtWith(one, { notice, source }))) return { kind: "Known" };
  const noticed = former.find((one) => isLive(one) && isNoticed(one));
  if (noticed !== undefined) return tightened(noticed, { notice, source }) ?? { kind: "Known" };
  const chosen = former.find((one) => isLive(one) && (one.cause === "Planned" || isUnderWay(one)));
  if (chosen === undefined || mayBeIgnored(notice.cause)) {
    return { kind: "Make", order: noticeOrder(node, { notice, source, former }) };
  }
  // Our own release is on its way: the machine goes as planned, whoever takes it.
  if (chosen.status.phase === "Releasing") return { kind: "Known" };
  const { noticedAt, deadlineAt } = notice;
  return { kind: "Force", departure: chosen, word: { noticedAt, deadlineAt, source } };
}

const machines = new WeakMap<readonly NodeFacts[], ReadonlyMap<string, NodeFacts>>();

/** By providerID and by its last part. Of a burst every word asks of the same picture. */
function machinesOf(nodes: readonly NodeFacts[]): ReadonlyMap<string, NodeFacts> {
  const known = machines.get(nodes);
  if (known !== undefined) return known;
  const made = new Map<string, NodeFacts>();
  for (const node of nodes) {
    const { providerID = "" } = node;
    for (const name of [providerID, providerID.slice(providerID.lastIndexOf("/") + 1)]) {
      if (name !== "" && !made.has(name)) made.set(name, node);
    }
  }
  machines.set(nodes, made);
  return made;
}

const byNode = new WeakMap<readonly Departure[], ReadonlyMap<string, readonly Departure[]>>();

function departuresByNode(
  departures: readonly Departure[],
): ReadonlyMap<string, readonly Departure[]> {
  const known = byNode.get(departures);
  if (known !== undefined) return known;
  const made = Map.groupBy(departures, ({ node }) => node.uid);
  byNode.set(departures, made);
  return made;
}

/**
 * Names come again: what happened before this node's machine was born happened to another one. EC2's ids
 * never do, and a young node's Spot warning may be older than its Node; but a machine that was stopped
 * may have been started again.
 */
function isAnothers({ cause, noticedAt }: Notice, node: NodeFacts): boolean {
  const { createdAt, instanceBornAt, providerID } = node;
  const staysItself = parseProviderId(providerID ?? "")?.cloud === "aws";
  if (staysItself && cause !== "NodeShutdown" && cause !== "Preempted") return false;
  return (instanceBornAt ?? createdAt ?? noticedAt) > noticedAt;
}

const machineLeft: ReadonlySet<unknown> = new Set(["Planned", "Preempted", "Forced", "Expired"]);

/** The event has had its departure, or its machine left after it by another one. */
function isDealtWith(
  one: Departure,
  { notice, source }: { readonly notice: Notice; readonly source: string },
): boolean {
  if (one.source === source) return true;
  const { endedAt, outcome } = one.status;
  return endedAt !== undefined && endedAt >= notice.noticedAt && machineLeft.has(outcome);
}

/**
 * What is known stays, whoever told it, and the deadline only moves to an earlier instant. A cause at
 * which the policy may leave the node at work gives way to one at which the node has to go.
 */
function tightened(
  departure: Departure,
  told: { readonly notice: Notice; readonly source: string },
): WordMeaning | undefined {
  const { cause, noticedAt } = told.notice;
  const known = departure.deadlineAt ?? never;
  const deadlineAt = earlier(known, told.notice.deadlineAt ?? never);
  const isGraver = mayBeIgnored(departure.cause) && !mayBeIgnored(cause);
  if (deadlineAt === known && !isGraver) return undefined;
  const word: ForcingWord = {
    noticedAt: departure.noticedAt ?? noticedAt,
    deadlineAt: deadlineAt === never ? undefined : deadlineAt,
    source: isGraver ? told.source : (departure.source ?? ""),
    ...(isGraver ? { cause } : {}),
  };
  return { kind: "Force", departure, word };
}

const never = Number.MAX_SAFE_INTEGER as Instant;

function mayBeIgnored(cause: Cause): boolean {
  return cause === "RebalanceRecommendation" || cause === "ScheduledMaintenance";
}

function isStale({ cause, deadlineAt, noticedAt }: Notice, at: Instant): boolean {
  // A machine that was shutting down is gone soon, too, or was started again.
  const isShort = deadlineAt !== undefined || cause === "NodeShutdown";
  return at > plus(deadlineAt ?? noticedAt, isShort ? staleAfterMs : trueForMs);
}
