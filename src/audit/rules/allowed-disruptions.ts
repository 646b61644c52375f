/**
 * How many pods of a PodDisruptionBudget may be disrupted, as Kubernetes' disruption controller
 * computes it. Source: kubernetes pkg/controller/disruption, the same from 1.30 to 1.37.
 */

import { fieldsOf, listOf, nameOf, textOf, valueAt } from "../../core/json/json-field.ts";
import { hasOrHave } from "../../core/reason/counted.ts";
import {
  type AuditedFleet,
  type DisruptionBudget,
  mostReplicasOf,
  replicasOf,
  selectedBy,
} from "../fleet.ts";
import { nameOfObject } from "../objects/manifest.ts";
import { identityOf, type Workload } from "../objects/workload.ts";
import { isReplicated } from "../report.ts";

/** Owners of pods without a `scale` subresource. A CronJob's pods belong to its Jobs. */
const withoutReplicas: ReadonlySet<string> = new Set(["Job", "CronJob", "DaemonSet", "Node"]);

/**
 * Why Kubernetes cannot tell how many of the budget's pods may be unavailable, and so allows none:
 * the real controller said so, or will. Only a number as minAvailable needs no number of replicas.
 * Source: `getExpectedScale`, which looks at every pod that is selected: also at finished ones, and
 * at those that no drain evicts.
 */
export function whyUncountable(fleet: AuditedFleet, budget: DisruptionBudget): string | undefined {
  const { minAvailable, maxUnavailable, manifest, selector } = budget;
  if (maxUnavailable === undefined && typeof minAvailable !== "string") return undefined;
  const failure = syncFailureOf(budget);
  if (failure !== undefined) return `the cluster cannot compute the budget: ${failure}`;
  const selected = withPods(fleet, selectedBy(fleet, budget));
  const others = fleet.otherOwnersIn(manifest.namespace)(selector);
  const owners = [
    ...selected.filter(({ kind }) => withoutReplicas.has(kind)),
    ...others.filter(({ kind }) => kind === "Pod" || withoutReplicas.has(kind)),
  ];
  const names = [...new Set(owners.map(nameOfOwner))];
  if (names.length > 0)
    return `${names.join(", ")} ${hasOrHave(names.length)} no number of replicas`;
  const isBare = selected.length > 0 && selected.every(({ kind }) => kind === "Pod");
  return isBare ? "pods without an owner are not expected" : undefined;
}

function nameOfOwner(owner: Pick<Workload, "kind" | "namespace" | "name">): string {
  return owner.kind === "Node" ? `Node ${owner.name}` : nameOfObject(owner);
}

/** What a recorded budget says about itself. */
function syncFailureOf({ manifest }: DisruptionBudget): string | undefined {
  const conditions = listOf(valueAt(manifest.json, ["status", "conditions"])).map(fieldsOf);
  const failed = conditions.find((one) => one.status === "False" && one.reason === "SyncFailed");
  return failed && (nameOf(failed.message) ?? "SyncFailed");
}

export interface AllowedDisruptions {
  /** While the fewest pods run, but at least one. */
  readonly least: number;
  readonly most: number;
  /** How many pods run at least. */
  readonly fewestPods: number;
}

/**
 * How many disruptions a budget allows at a time while all pods are healthy; undefined if the
 * specification does not say (unknown replicas, nothing selected, an owner of another kind).
 * Source: `getExpectedPodCount`.
 */
export function allowedDisruptions(
  fleet: AuditedFleet,
  budget: DisruptionBudget,
): AllowedDisruptions | undefined {
  const selected = withPods(fleet, selectedBy(fleet, budget));
  if (refusesAll(budget, selected)) return { least: 0, most: 0, fewestPods: 1 };
  const counts = [...Map.groupBy(selected, identityOf).values()].map((same) =>
    countOf(fleet, same),
  );
  if (counts.length === 0 || !counts.every((count) => count !== undefined)) return undefined;
  const few = fewestOf(counts);
  const [least, most] = [allowedOf(budget, few), allowedOf(budget, sumOf(counts, "most"))];
  if (least === undefined || most === undefined) return undefined;
  return { least, most, fewestPods: few.owned + few.bare };
}

/**
 * Whether a budget refuses every eviction, whatever the number of pods and whoever owns them: its
 * maxUnavailable is 0, or it has neither field and so expects no pods. With a pod without an owner,
 * another one may be unavailable.
 */
function refusesAll(budget: DisruptionBudget, selected: readonly Workload[]): boolean {
  if (selected.length === 0) return false;
  if (budget.maxUnavailable === undefined) return budget.minAvailable === undefined;
  const bare = selected.filter(({ kind }) => kind === "Pod").length;
  return amountOf(budget.maxUnavailable, 1) === 0 && (bare === 0 || bare === selected.length);
}

function withPods(fleet: AuditedFleet, workloads: readonly Workload[]): readonly Workload[] {
  return workloads.filter((workload) => mostReplicasOf(fleet, workload) !== 0);
}

interface PodCount {
  readonly isBare: boolean;
  /** Its pods end by themselves. */
  readonly passes: boolean;
  readonly least: number;
  readonly most: number;
}

/** The pods of one object, by all its copies in the input; undefined if their number is unknown. */
function countOf(fleet: AuditedFleet, copies: readonly Workload[]): PodCount | undefined {
  const [first] = copies;
  const isCounted = (one: Workload) => isReplicated(one) || one.kind === "Pod" || passes(one);
  if (first === undefined || !copies.every(isCounted)) return undefined;
  const least = copies.map((copy) => replicasOf(fleet, copy) ?? Number.NaN);
  const most = copies.map((copy) =>
    mayOverlap(copy) ? Number.POSITIVE_INFINITY : (mostReplicasOf(fleet, copy) ?? Number.NaN),
  );
  if ([...least, ...most].some(Number.isNaN)) return undefined;
  const bounds = { least: Math.min(...least), most: Math.max(...most) };
  return { isBare: first.kind === "Pod", passes: passes(first), ...bounds };
}

function passes({ kind }: Workload): boolean {
  return kind === "Job" || kind === "CronJob";
}

/** Source: kubernetes api batch/v1, CronJobSpec: `Allow` is the default. */
function mayOverlap({ kind, manifest }: Workload): boolean {
  const policy = textOf(valueAt(manifest.json, ["spec", "concurrencyPolicy"])) ?? "Allow";
  return kind === "CronJob" && policy === "Allow";
}

/** Pods that are ready at one time: of owners that say how many there should be, and of none. */
interface PodSum {
  readonly owned: number;
  readonly bare: number;
}

/** What is left while no Job runs, if there is anything else, but at least one pod. */
function fewestOf(counts: readonly PodCount[]): PodSum {
  const lasting = counts.filter((count) => !count.passes);
  const sum = sumOf(lasting.length > 0 ? lasting : counts, "least");
  return sum.owned + sum.bare > 0 ? sum : { owned: 1, bare: 0 };
}

function sumOf(counts: readonly PodCount[], bound: "least" | "most"): PodSum {
  const add = (some: readonly PodCount[]) => some.reduce((sum, count) => sum + count[bound], 0);
  return {
    owned: add(counts.filter(({ isBare }) => !isBare)),
    bare: add(counts.filter(({ isBare }) => isBare)),
  };
}

/**
 * Pods without an owner are healthy, but a share is not counted from them, and they are not
 * expected. Percentages of both fields round up.
 */
function allowedOf(budget: DisruptionBudget, { owned, bare }: PodSum): number | undefined {
  const { maxUnavailable, minAvailable } = budget;
  const asked = amountOf(maxUnavailable ?? minAvailable, owned);
  if (asked === undefined) return undefined;
  const needed = maxUnavailable === undefined ? asked : Math.max(0, owned - asked);
  return Math.max(0, owned + bare - needed);
}

/** A whole number, or a percentage of `expected` rounded up; undefined for anything else. */
function amountOf(written: unknown, expected: number): number | undefined {
  if (typeof written === "number") return Number.isSafeInteger(written) ? written : undefined;
  const percent = typeof written === "string" ? /^(\d+)%$/.exec(written)?.[1] : undefined;
  return percent === undefined ? undefined : Math.ceil((Number(percent) * expected) / 100);
}
