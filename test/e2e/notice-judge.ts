import { evictionsBy, type History, nameOf } from "./history.ts";
import { incarnationsOf, podStoriesOf, podsOf } from "./incarnation.ts";

/** What a cluster under notices has to satisfy. */
export interface NoticeCharge {
  /** The names of the nodes with a notice, and of those that must not be touched. */
  readonly noticed: readonly string[];
  readonly spared: readonly string[];
  /** The controller's user name at the API server. */
  readonly user: string;
}

/** All violations, a sentence each; empty if there are none. */
export function judgeNotices(history: History, charge: NoticeCharge): readonly string[] {
  const lives = incarnationsOf(history);
  const stories = podStoriesOf(history.changes);
  const granted = evictionsBy(charge.user, history);
  const ofNoticed = charge.noticed.flatMap((name) => {
    const life = lives.find((one) => one.name === name);
    if (life?.cordonedAt === undefined) return [`${name} was never cordoned`];
    const { cordonedAt } = life;
    return podsOf(life, stories).flatMap((pod) => {
      if (pod.boundAt > cordonedAt) return [`${pod.name} came to ${name} after its cordon`];
      if (pod.leavingAt === undefined) return [`${pod.name} was left on ${name}`];
      if (pod.leavingAt < cordonedAt) return [`${pod.name} had to leave before ${name}'s cordon`];
      if (pod.evicted && granted.has(`${pod.namespace}/${pod.name}`)) return [];
      return [`${pod.name} left ${name}, but not by an eviction of ${charge.user}`];
    });
  });
  const ofSpared = lives
    .filter(({ name, cordonedAt }) => charge.spared.includes(name) && cordonedAt !== undefined)
    .map(({ name }) => `${name} was cordoned without a notice`);
  return [...ofNoticed, ...ofSpared, ...strangers(history, charge)];
}

function strangers(history: History, { noticed }: NoticeCharge): readonly string[] {
  const others = history.changes.flatMap(({ kind, object }) => {
    const node = kind === "Departure" ? (object.spec?.node?.name ?? "") : undefined;
    return node === undefined || noticed.includes(node) ? [] : `${nameOf(object)} of ${node}`;
  });
  return [...new Set(others)].map((name) => `the Departure ${name} was made without a notice`);
}
