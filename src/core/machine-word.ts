import { type Departure, isLive, isVoluntary } from "./departure.ts";
import { isUnderWay } from "./departure-index.ts";
import type { NodeFacts } from "./node.ts";
import type { NodesSeen } from "./node-notice.ts";
import type { Notice } from "./notice.ts";
import { type NoticeCall, noticeOrder } from "./notice-call.ts";
import { selectPolicy } from "./selector.ts";
import type { Instant } from "./time.ts";

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
  | { readonly kind: "NotOwned" };

/**
 * What a word calls for. The same event by two ways is one departure: where one stands, the earlier
 * deadline counts. What a policy may ignore (a rebalance, maintenance) leaves a planned departure as
 * it was and gets one of its own.
 */
export function meaningOf({ machine, notice }: MachineWord, seen: NodesSeen): WordMeaning {
  const node = seen.nodes.find((one) => isMachine(one, machine));
  if (node === undefined || isYounger(node, notice.noticedAt)) return { kind: "NoNode" };
  if (selectPolicy(node, seen.policies) === undefined) return { kind: "NotOwned" };
  const source = `${notice.source}/${notice.eventId}`;
  const former = seen.departures.filter((one) => one.node.uid === node.uid);
  if (former.some((one) => isDealtWith(one, { notice, source }))) return { kind: "Known" };
  const noticed = former.find((one) => isLive(one) && isNoticed(one));
  if (noticed !== undefined) return tightened(noticed, notice) ?? { kind: "Known" };
  const chosen = former.find((one) => isLive(one) && (one.cause === "Planned" || isUnderWay(one)));
  if (chosen === undefined || mayBeIgnored(notice)) {
    return { kind: "Make", order: noticeOrder(node, { notice, source, former }) };
  }
  // Our own release is on its way: the machine goes as planned, whoever takes it.
  if (chosen.status.phase === "Releasing") return { kind: "Known" };
  const { noticedAt, deadlineAt } = notice;
  return { kind: "Force", departure: chosen, word: { noticedAt, deadlineAt, source } };
}

function isMachine({ providerID }: NodeFacts, machine: string): boolean {
  return providerID === machine || providerID?.endsWith(`/${machine}`) === true;
}

/** Names come again: what happened before this node's machine was born happened to another one. */
function isYounger({ createdAt, instanceBornAt }: NodeFacts, eventAt: Instant): boolean {
  return (instanceBornAt ?? createdAt ?? eventAt) > eventAt;
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

function isNoticed(departure: Departure): boolean {
  return departure.noticedAt !== undefined || !isVoluntary(departure.cause);
}

/** What is known stays, whoever told it; only the deadline moves, and only to an earlier instant. */
function tightened(
  departure: Departure,
  { deadlineAt, noticedAt }: Notice,
): WordMeaning | undefined {
  const known = departure.deadlineAt;
  if (deadlineAt === undefined || (known !== undefined && known <= deadlineAt)) return undefined;
  const { source = "" } = departure;
  const word = { noticedAt: departure.noticedAt ?? noticedAt, deadlineAt, source };
  return { kind: "Force", departure, word };
}

function mayBeIgnored({ cause }: Notice): boolean {
  return cause === "RebalanceRecommendation" || cause === "ScheduledMaintenance";
}
