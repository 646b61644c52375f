import { didYouMean } from "../../config/problem.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import type { PodFacts } from "../../core/cluster/pod.ts";

const ownPrefix = "lastcall.dev/";

/** Those that somebody sets, and those that Lastcall writes. */
const nodeMarks = ["hold", "hold-by", "departure", "cordoned-before", "doctor"];
const podMarks = [
  ...["do-not-disturb", "audit-ignore", "restarted-for"],
  ...["departure", "placeholder-for", "placeholder-of"],
];

export function unknownNodeMarks(nodes: readonly NodeFacts[]): readonly string[] {
  return unknownMarks(nodes, nodeMarks);
}

export function unknownPodMarks(pods: readonly PodFacts[]): readonly string[] {
  const named = pods.map(({ namespace, name, annotations }) => {
    return { name: `${namespace}/${name}`, annotations };
  });
  return unknownMarks(named, podMarks);
}

interface Marked {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Annotations that look like ours and do nothing: somebody relies on them. */
function unknownMarks(objects: readonly Marked[], known: readonly string[]): readonly string[] {
  const found = new Map<string, string[]>();
  for (const { name, annotations } of objects) {
    for (const key of Object.keys(annotations)) {
      if (!key.startsWith(ownPrefix) || known.includes(key.slice(ownPrefix.length))) continue;
      const names = found.get(key);
      if (names === undefined) found.set(key, [name]);
      else names.push(name);
    }
  }
  return [...found].map(([key, [first = "", ...others]]) => {
    const near = didYouMean(key.slice(ownPrefix.length), known);
    const meant = near === undefined ? "" : ` (did you mean ${ownPrefix}${near}?)`;
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    return `The annotation ${key} of ${first}${more} is unknown and does nothing${meant}`;
  });
}
