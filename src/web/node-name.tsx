import { nameParts } from "../board/name-parts.ts";
import type { VNode } from "./preact.ts";
import { nodeLink } from "./view-state.ts";

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
    // Its two parts would be read with a space between them.
    <a class="name" href={nodeLink(name, departure)} aria-label={name}>
      <CutText text={name} />
    </a>
  );
}
