import { type Change, type History, isReady, keyOf, nameOf } from "./history.ts";
import { type PodStory, podStoriesOf } from "./incarnation.ts";

/** The controller's own namespace, where placeholders live. */
const ownNamespace = "lastcall";

/** A placeholder's name is this prefix and the uid of the pod that it reserves capacity for. */
const prefix = "placeholder-";

/**
 * Violations of make-before-break while a node left, a sentence each. Every pod that leaves must
 * have a placeholder elsewhere, all placeholders must be ready before the first pod has to leave,
 * and each must be removed after its pod had to leave.
 */
export function judgeCapacity({ changes }: History, node: string): readonly string[] {
  const stories = podStoriesOf(changes);
  const capacities = new Map(
    stories
      .filter(({ namespace, name }) => namespace === ownNamespace && name.startsWith(prefix))
      .map((story) => [story.name.slice(prefix.length), story]),
  );
  const leavers = stories.filter(
    ({ namespace, nodeName, leavingAt }) =>
      namespace !== ownNamespace && nodeName === node && leavingAt !== undefined,
  );
  if (leavers.length === 0) return [`nobody left ${node}`];
  const firstAt = Math.min(...leavers.map(({ leavingAt = 0 }) => leavingAt));
  const readyAt = readiness(changes);
  return leavers.flatMap((pod) =>
    faultsOf(pod, { capacity: capacities.get(pod.key), firstAt, readyAt }),
  );
}

function faultsOf(
  pod: PodStory,
  about: {
    readonly capacity: PodStory | undefined;
    readonly firstAt: number;
    readonly readyAt: ReadonlyMap<string, number>;
  },
): readonly string[] {
  const { capacity, firstAt, readyAt } = about;
  if (capacity === undefined) return [`${pod.name} left without room elsewhere`];
  const { key, nodeName, goneAt } = capacity;
  const late = (readyAt.get(key) ?? Number.POSITIVE_INFINITY) > firstAt;
  return [
    ...(nodeName === pod.nodeName ? [`the room of ${pod.name} was on the node that leaves`] : []),
    ...(late ? [`the room of ${pod.name} was not ready before the first pod had to leave`] : []),
    ...(goneAt === undefined ? [`the room of ${pod.name} was never given up`] : []),
    ...(goneAt !== undefined && goneAt < (pod.leavingAt ?? 0)
      ? [`the room of ${pod.name} was given up before it had to leave`]
      : []),
  ];
}

/** When each pod was first seen ready. */
function readiness(changes: readonly Change[]): ReadonlyMap<string, number> {
  const readyAt = new Map<string, number>();
  for (const { kind, object, order } of changes) {
    if (kind !== "Pod" || readyAt.has(keyOf(object)) || !isReady(object)) continue;
    readyAt.set(keyOf(object), order);
  }
  return readyAt;
}

/** The images of all placeholders. */
export function placeholderImages({ changes }: History): ReadonlySet<string | undefined> {
  return new Set(
    changes.flatMap(({ kind, object }) =>
      kind === "Pod" &&
      object.metadata?.namespace === ownNamespace &&
      nameOf(object).startsWith(prefix)
        ? [object.spec?.containers[0]?.image]
        : [],
    ),
  );
}
