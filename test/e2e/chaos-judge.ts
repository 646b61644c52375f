import type { Spell } from "../support/lasting-fault.ts";
import { type Change, type History, isBoundToNode, nameOf } from "./history.ts";
import { podStoriesOf } from "./incarnation.ts";
import { ages, leftMarked } from "./judge.ts";

/** A departure that the test created: a cloud's notice or a person's request. */
export interface Asked {
  readonly departure: string;
  readonly node: string;
  readonly kind: "Notice" | "Rotation";
  /** Milliseconds since 1970, before its creation was requested. */
  readonly atMs: number;
}

export interface ChaosCharge {
  readonly asked: readonly Asked[];
  /** The controller's user name at the API server. */
  readonly user: string;
  /** Faults that lasted; in milliseconds since 1970. */
  readonly lasting?: readonly Spell[];
}

/** The limit from the notice to the cordon, whatever requests fail. */
const cordonLimitMs = 5_000;
/**
 * Budgets are respected for half of a notice of 30 s, less the margin and what a slow API server
 * may cost.
 */
const budgetsOwnMs = 10_000;

/** All violations, a sentence each; empty if there are none. */
export function judgeChaos(history: History, charge: ChaosCharge): readonly string[] {
  return [
    ...charge.asked.flatMap((one) => lateCordon(one, history, charge)),
    ...forcedBeforeTime(history, charge),
    ...releasedOnce(history, charge),
    ...history.changes.flatMap((change) => failedEnd(change, charge)),
    ...leftMarked(history),
  ];
}

/** Milliseconds from each notice to its node's cordon, according to the audit log. */
export function cordonTimes(history: History, charge: ChaosCharge): readonly number[] {
  return charge.asked
    .filter(({ kind }) => kind === "Notice")
    .map((one) => cordonMs(one, history, charge.user) ?? Number.POSITIVE_INFINITY);
}

function cordonMs({ node, atMs }: Asked, { audit }: History, user: string): number | undefined {
  const cordon = audit.find(
    (entry) =>
      entry.verb === "patch" &&
      entry.resource === "nodes" &&
      entry.subresource === "" &&
      entry.code === 200 &&
      entry.name === node &&
      entry.user === user &&
      entry.receivedAtUs / 1000 >= atMs,
  );
  return cordon && cordon.answeredAtUs / 1000 - atMs;
}

function lateCordon(
  one: Asked,
  history: History,
  { user, lasting = [] }: ChaosCharge,
): readonly string[] {
  if (one.kind !== "Notice") return [];
  const sinceMs = cordonMs(one, history, user);
  if (sinceMs === undefined) return [`${one.node} was never cordoned for ${one.departure}`];
  const amid = lasting.find(({ fromMs, toMs }) => fromMs <= one.atMs && one.atMs < toMs);
  const tookMs = sinceMs - (amid === undefined ? 0 : amid.toMs - one.atMs);
  if (tookMs <= cordonLimitMs) return [];
  return [`${one.node} was cordoned ${Math.round(tookMs)} ms after its notice ${one.departure}`];
}

/** Deletions, which bypass the budget of a pod, that came too early. */
function forcedBeforeTime(history: History, { asked, user }: ChaosCharge): readonly string[] {
  const stories = podStoriesOf(history.changes);
  return history.audit
    .filter((entry) => entry.user === user && entry.verb === "delete" && entry.resource === "pods")
    .filter(({ namespace }) => namespace === "default")
    .flatMap(({ name, receivedAtUs }) => {
      const atMs = receivedAtUs / 1000;
      const node = stories.find((one) => one.name === name)?.nodeName;
      const last = asked.findLast((one) => one.node === node && one.atMs <= atMs);
      if (last?.kind !== "Notice") return [`${name} of ${node} was deleted without a notice`];
      const sinceMs = atMs - last.atMs;
      if (sinceMs >= budgetsOwnMs) return [];
      return [`${name} of ${node} was deleted ${Math.round(sinceMs)} ms after the notice`];
    });
}

function releasedOnce(history: History, { asked, lasting }: ChaosCharge): readonly string[] {
  const stayed = new Set(history.changes.flatMap((change) => stayedAmid(change, lasting) ?? []));
  const full = history.releases.flatMap((release) =>
    release.podsThen
      .filter((pod) => !isBoundToNode(pod))
      .map(
        (pod) => `${release.machine} was released with ${nameOf(pod)} on it${ages(pod, release)}`,
      ),
  );
  const nodes = [
    ...new Set([...asked, ...history.machineEnds.map(toNode)].map(({ node }) => node)),
  ];
  const miscounted = nodes.flatMap((node) => {
    const left = asked.filter(({ departure }) => !stayed.has(departure));
    const wanted = left.filter((one) => one.node === node).length;
    const ends = history.machineEnds.filter(({ machine }) => machine === node).length;
    return ends === wanted ? [] : [`${node} lost ${ends} machines, expected ${wanted}`];
  });
  return [...full, ...miscounted];
}

function toNode({ machine }: { readonly machine: string }): { readonly node: string } {
  return { node: machine };
}

function failedEnd(change: Change, { lasting }: ChaosCharge): readonly string[] {
  if (change.kind !== "Departure" || change.type !== "Set") return [];
  const { outcome, reason } = change.object.status ?? {};
  if (outcome === undefined || ["Planned", "Preempted", "Forced"].includes(outcome)) return [];
  if (stayedAmid(change, lasting) !== undefined) return [];
  return [`${nameOf(change.object)} ended as ${outcome}, because of ${reason}`];
}

/** How long after the end of a fault its last refusals may still end a departure. */
const aftermathMs = 30_000;

/** The name of a departure that was given up because its requests were refused for too long. */
function stayedAmid(change: Change, lasting: readonly Spell[] = []): string | undefined {
  if (change.kind !== "Departure" || change.type !== "Set") return undefined;
  const { outcome, reason, endedAt } = change.object.status ?? {};
  if (outcome !== "RolledBack" || reason !== "RequestRefused" || endedAt === undefined) {
    return undefined;
  }
  const atMs = Date.parse(endedAt);
  const isAmid = lasting.some(({ fromMs, toMs }) => fromMs <= atMs && atMs <= toMs + aftermathMs);
  return isAmid ? nameOf(change.object) : undefined;
}
