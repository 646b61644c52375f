import type { Pod } from "kubernetes-types/core/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import type { AuditEntry } from "../support/audit-log.ts";
import { evictionsBy, type History, isBoundToNode, isReady, keyOf, nameOf } from "./history.ts";
import {
  type Incarnation,
  incarnationsOf,
  type PodStory,
  podStoriesOf,
  podsOf,
} from "./incarnation.ts";

/** What a rotation has to satisfy. */
export interface Charge {
  /** The uids of the Node objects that had to be rotated. */
  readonly rotated: readonly string[];
  /** The controller's user name at the API server. */
  readonly user: string;
  /** How many machines may be out at once. */
  readonly atOnce: number;
  /** The names of replacements; absent: a replacement takes over the name. */
  readonly heirs?: RegExp;
  /** The user whose finalizer lets it delete a Node along with its machine; absent: nobody. */
  readonly finalizer?: string;
}

type Check = (facts: Facts) => readonly string[];

interface Facts extends Charge {
  readonly history: History;
  readonly lives: readonly Incarnation[];
  /** The lives that had to end. */
  readonly former: readonly Incarnation[];
  readonly stories: readonly PodStory[];
}

const checks: readonly Check[] = [
  cordonedBeforeFirstEviction,
  leftByEviction,
  neverPlainlyDeleted,
  budgetsKept,
  releasedOnceAndEmpty,
  nodeAfterMachine,
  notBeforeItsTime,
  oneAfterAnother,
  replaced,
  nothingLeftBehind,
];

/** All violations, a sentence each; empty if there are none. */
export function judge(history: History, charge: Charge): readonly string[] {
  const facts = factsOf(history, charge);
  return checks.flatMap((check) => check(facts));
}

/** Separate: if deadlines differ, a plan may have to take two nodes of one zone in a row. */
export function zonesAlternate(history: History, charge: Charge): readonly string[] {
  const left = inOrderOfCordon(factsOf(history, charge).former);
  return left.flatMap((node, place) => {
    const before = left[place - 1];
    if (before?.zone !== node.zone) return [];
    return [`${before.name} and then ${node.name}, both in ${node.zone}, left in a row`];
  });
}

/**
 * Separate: requested departures, and those that were overdue at first, may follow more closely.
 */
export function leftApart(
  history: History,
  { gapMs, ...charge }: Charge & { readonly gapMs: number },
): readonly string[] {
  const { former } = factsOf(history, charge);
  const cordons = former
    .flatMap(({ name }) => {
      const cordon = cordonOf(name, { history, user: charge.user });
      return cordon === undefined ? [] : [{ name, atMs: cordon.answeredAtUs / 1000 }];
    })
    .toSorted((a, b) => a.atMs - b.atMs);
  return cordons.flatMap(({ name, atMs }, place) => {
    const before = cordons[place - 1];
    if (before === undefined || atMs - before.atMs >= gapMs) return [];
    return [
      `${name} was cordoned ${atMs - before.atMs} ms after ${before.name}, expected ${gapMs}`,
    ];
  });
}

/** Separate: a node whose departure was rolled back may be cordoned for the next one. */
export function cordonedAgain({ changes }: Pick<History, "changes">): readonly string[] {
  const nodes = changes.filter((one) => one.kind === "Node");
  return [...Map.groupBy(nodes, ({ object }) => keyOf(object)).values()].flatMap((ofOne) => {
    const cordons = ofOne.filter(
      ({ object }, place) =>
        object.spec?.unschedulable === true &&
        ofOne[place - 1]?.object.spec?.unschedulable !== true,
    );
    if (cordons.length < 2) return [];
    return [`${nameOf(cordons[0]?.object ?? {})} was cordoned ${cordons.length} times`];
  });
}

function factsOf(history: History, charge: Charge): Facts {
  const lives = incarnationsOf(history);
  const firstOf = (uid: string) => lives.find((one) => one.uid === uid);
  const former = charge.rotated.flatMap((uid) => firstOf(uid) ?? []);
  return { ...charge, history, lives, former, stories: podStoriesOf(history.changes) };
}

function inOrderOfCordon(nodes: readonly Incarnation[]): readonly Incarnation[] {
  return nodes.toSorted((a, b) => (a.cordonedAt ?? 0) - (b.cordonedAt ?? 0));
}

function cordonedBeforeFirstEviction({ former, stories }: Facts): readonly string[] {
  return former.flatMap((node) => {
    if (node.cordonedAt === undefined) return [`${node.name} was never cordoned`];
    const { cordonedAt } = node;
    return podsOf(node, stories)
      .filter(({ leavingAt }) => leavingAt !== undefined && leavingAt < cordonedAt)
      .map(({ name }) => `${name} had to leave ${node.name} before it was cordoned`);
  });
}

function leftByEviction({ former, stories, history, user }: Facts): readonly string[] {
  const granted = evictionsBy(user, history);
  return former.flatMap((node) =>
    podsOf(node, stories).flatMap(({ name, namespace, goneAt, evicted }) => {
      if (goneAt === undefined) return [`${name} is still on ${node.name}`];
      if (!evicted) return [`${name} left ${node.name} without a mark of the eviction API`];
      if (granted.has(`${namespace}/${name}`)) return [];
      return [`${name} left ${node.name}, but not by an eviction of ${user}`];
    }),
  );
}

function neverPlainlyDeleted({ history, user }: Facts): readonly string[] {
  return history.audit
    .filter(({ verb, resource }) => verb.startsWith("delete") && resource === "pods")
    .filter((entry) => entry.user === user)
    .map(({ namespace, name }) => `${namespace}/${name} was deleted past the eviction API`);
}

/** Replays the pods change by change; healthy is meant as in the disruption controller. */
function budgetsKept({ history }: Facts): readonly string[] {
  const pods = new Map<string, Pod>();
  const budgets = new Map<string, PodDisruptionBudget>();
  const broken = new Map<string, string>();
  for (const { kind, type, object, order } of history.changes) {
    if (kind === "Budget") budgets.set(keyOf(object), object as PodDisruptionBudget);
    if (kind !== "Pod") continue;
    if (type === "Gone") pods.delete(keyOf(object));
    else pods.set(keyOf(object), object as Pod);
    for (const budget of budgets.values()) {
      const wanted = budget.status?.desiredHealthy ?? 0;
      const healthy = [...pods.values()].filter((pod) => isHealthy(pod, budget)).length;
      if (healthy >= wanted || broken.has(nameOf(budget))) continue;
      const sentence = `at ${order} ${nameOf(budget)} had ${healthy} healthy pods of ${wanted}`;
      broken.set(nameOf(budget), sentence);
    }
  }
  return [...broken.values()];
}

function isHealthy(pod: Pod, budget: PodDisruptionBudget): boolean {
  const wanted = Object.entries(budget.spec?.selector?.matchLabels ?? {});
  const selected =
    pod.metadata?.namespace === budget.metadata?.namespace &&
    wanted.every(([key, value]) => pod.metadata?.labels?.[key] === value);
  return selected && pod.metadata?.deletionTimestamp === undefined && isReady(pod);
}

function releasedOnceAndEmpty({ history, former }: Facts): readonly string[] {
  const early = history.releases.flatMap((release) =>
    release.podsThen
      .filter((pod) => !isBoundToNode(pod))
      .map(
        (pod) => `${release.machine} was released with ${nameOf(pod)} on it${ages(pod, release)}`,
      ),
  );
  const asked = new Set(history.releases.map(({ machine }) => machine));
  const ends = Map.groupBy(history.machineEnds, ({ machine }) => machine);
  const miscounted = former.flatMap(({ name }) => {
    if (!asked.has(name)) return [`${name} was never released`];
    const count = ends.get(name)?.length ?? 0;
    return count === 1 ? [] : [`the machine of ${name} ended ${count} times, expected once`];
  });
  const names = new Set(former.map(({ name }) => name));
  const strangers = [...asked].filter((name) => !names.has(name));
  return [...early, ...miscounted, ...strangers.map((name) => `${name} was released, too`)];
}

/** Distinguishes a pod that was bound late from one that was there all the time. */
export function ages(pod: Pod, { at }: { readonly at: number }): string {
  const { conditions = [] } = pod.status ?? {};
  const bound = conditions.find(({ type }) => type === "PodScheduled")?.lastTransitionTime;
  const words = [
    ["made", pod.metadata?.creationTimestamp],
    ["bound", bound],
    ["told to end", pod.metadata?.deletionTimestamp],
  ].flatMap(([what, time]) =>
    time === undefined ? [] : [`${what} ${((at - Date.parse(time)) / 1000).toFixed(1)} s before`],
  );
  return words.length === 0 ? "" : ` (${words.join(", ")})`;
}

/** Compares times of the API server and of the cloud, which share one clock here. */
function nodeAfterMachine({ history, former, finalizer }: Facts): readonly string[] {
  const ends = new Map(history.machineEnds.map(({ machine, at }) => [machine, at]));
  return history.audit
    .filter(({ verb, resource, code }) => verb === "delete" && resource === "nodes" && code < 300)
    .filter(({ name }) => former.some((node) => node.name === name))
    .filter(({ user }) => user !== finalizer)
    .filter(({ name, receivedAtUs }) => receivedAtUs / 1000 < (ends.get(name) ?? Infinity))
    .map(({ name }) => `the Node object ${name} was removed before its machine was gone`);
}

function notBeforeItsTime({ history, former, user }: Facts): readonly string[] {
  return former.flatMap(({ name, uid }) => {
    const cordon = cordonOf(name, { history, user });
    if (cordon === undefined) return [`${name} was never marked by ${user}`];
    const times = history.changes.flatMap(({ kind, object }) =>
      kind === "Departure" && object.spec?.node?.uid === uid
        ? Date.parse(object.spec.departAt ?? "")
        : [],
    );
    // A plan may move until its departure starts; the last instant must not be after the cordon.
    const departAt = times.at(-1) ?? Number.NaN;
    if (cordon.answeredAtUs / 1000 >= departAt) return [];
    return [`${name} was cordoned ${departAt - cordon.answeredAtUs / 1000} ms before its time`];
  });
}

/** The first patch of a node by the user. */
function cordonOf(
  name: string,
  { history, user }: Pick<Facts, "history" | "user">,
): AuditEntry | undefined {
  return history.audit.find(
    (entry) =>
      entry.verb === "patch" &&
      entry.resource === "nodes" &&
      entry.subresource === "" &&
      entry.name === name &&
      entry.user === user &&
      entry.code === 200,
  );
}

/** A node is out from its cordon to the end of its life. */
function oneAfterAnother({ former, atOnce }: Facts): readonly string[] {
  return former.flatMap(({ name, cordonedAt = 0 }) => {
    const out = former.filter(
      (other) =>
        (other.cordonedAt ?? Infinity) <= cordonedAt && (other.to ?? Infinity) > cordonedAt,
    );
    if (out.length <= atOnce) return [];
    return [`${name} left while ${out.length - 1} others were out, expected ${atOnce - 1}`];
  });
}

function replaced({ former, lives, heirs }: Facts): readonly string[] {
  // Replacements with new names are assigned by their order.
  const fresh = lives.filter((one) => heirs?.test(one.name) === true && !former.includes(one));
  const inOrder = former.toSorted((a, b) => (a.to ?? 0) - (b.to ?? 0));
  return inOrder.flatMap((node, place) => {
    if (node.to === undefined) return [`${node.name} has not left`];
    const heir =
      heirs === undefined
        ? lives.find(({ name, from }) => name === node.name && from >= (node.to ?? 0))
        : fresh.toSorted((a, b) => a.from - b.from)[place];
    if (heir === undefined) return [`nothing has replaced ${node.name}`];
    if (heir.to !== undefined) return [`the replacement of ${node.name} did not last`];
    return isReady(heir.last) ? [] : [`the replacement of ${node.name} is not ready`];
  });
}

function nothingLeftBehind({ lives }: Facts): readonly string[] {
  return marksOf(lives);
}

/** Marks on nodes that nothing will remove. */
export function leftMarked(history: History): readonly string[] {
  return marksOf(incarnationsOf(history));
}

function marksOf(lives: readonly Incarnation[]): readonly string[] {
  return lives
    .filter(({ to }) => to === undefined)
    .flatMap(({ name, last }) => {
      const marks = [
        ...(last.spec?.unschedulable === true ? ["a cordon"] : []),
        ...(last.spec?.taints ?? [])
          .map(({ key }) => key)
          .filter((key) => key.startsWith("lastcall.dev/")),
        ...Object.keys(last.metadata?.annotations ?? {}).filter((key) =>
          key.startsWith("lastcall.dev/"),
        ),
      ];
      return marks.map((mark) => `${name} was left with ${mark}`);
    });
}
