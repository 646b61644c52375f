import type { VNode } from "./preact.ts";
import { nodeLink } from "./view-state.ts";

/** The hash and the random part of a name by GKE, as in `3f9ac21b-x7km`. */
const mostEnd = 14;

/**
 * A name in two parts: a column that is too narrow cuts the end of the first, and keeps the second.
 * Names in a domain differ at their start, others at their end.
 */
export function nameParts(name: string): readonly [start: string, end: string] {
  if (name.includes(".")) return [name, ""];
  const words = name.split("-");
  for (const count of [2, 1]) {
    const end = words.slice(-count).join("-");
    if (words.length > count && end.length <= mostEnd) return [name.slice(0, -end.length), end];
  }
  return name.length > mostEnd ? [name.slice(0, -8), name.slice(-8)] : [name, ""];
}

/** On one line, cut in the middle if it does not fit. */
export function CutText({ text }: { readonly text: string }): VNode {
  const [start, end] = nameParts(text);
  return (
    <span class="cut" title={text} dir="ltr">
      <span>{start}</span>
      <span>{end}</span>
    </span>
  );
}

interface NameProps {
  readonly name: string;
  /** Leads to the steps of this departure. */
  readonly departure?: string;
}

export function NodeName({ name, departure }: NameProps): VNode {
  return (
    <a class="name" href={nodeLink(name, departure)}>
      <CutText text={name} />
    </a>
  );
}
