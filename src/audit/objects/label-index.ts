import {
  type LabelSelector,
  type Labels,
  matchesLabelSelector,
} from "../../core/cluster/placement.ts";

/** Answers which of many things with labels a selector selects, in their order. */
export type SelectedBy<Item> = (selector: LabelSelector | undefined) => readonly Item[];

/** Answers which of many selectors select some labels, in their order. */
export type Selecting<Item> = (labels: Labels) => readonly Item[];

/**
 * Looks things up by one `key=value` of the selector. Trying every selector on everything takes
 * seconds in a namespace of a few thousand workloads.
 */
export function indexByLabels<Item>(
  items: readonly Item[],
  labelsOf: (item: Item) => Labels,
): SelectedBy<Item> {
  const byPair = new Map<string, Item[]>();
  for (const item of items) {
    for (const pair of Object.entries(labelsOf(item))) addTo(byPair, pairKey(pair), item);
  }
  return (selector) => {
    if (selector === undefined) return [];
    const [pair] = Object.entries(selector.matchLabels ?? {});
    const near = pair === undefined ? items : (byPair.get(pairKey(pair)) ?? []);
    return near.filter((item) => matchesLabelSelector(selector, labelsOf(item)));
  };
}

/** The other way round. What has no selector selects nothing. */
export function indexBySelector<Item>(
  items: readonly Item[],
  selectorOf: (item: Item) => LabelSelector | undefined,
): Selecting<Item> {
  const byPair = new Map<string, number[]>();
  const anyLabels: number[] = [];
  items.forEach((item, at) => {
    const selector = selectorOf(item);
    const [pair] = Object.entries(selector?.matchLabels ?? {});
    if (pair !== undefined) addTo(byPair, pairKey(pair), at);
    else if (selector !== undefined) anyLabels.push(at);
  });
  return (labels) => {
    const near = Object.entries(labels).flatMap((pair) => byPair.get(pairKey(pair)) ?? []);
    return [...near, ...anyLabels]
      .sort((a, b) => a - b)
      .flatMap((at) => {
        const item = items[at] as Item;
        return matchesLabelSelector(selectorOf(item) as LabelSelector, labels) ? [item] : [];
      });
  };
}

function pairKey([key, value]: readonly [string, string]): string {
  return `${key}\u0000${value}`;
}

function addTo<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const found = map.get(key);
  if (found === undefined) map.set(key, [value]);
  else found.push(value);
}
