import { parseInstant } from "../../core/time/time.ts";
import type { VNode } from "../preact.ts";
import { momentText } from "./format.ts";
import type { Language } from "./words.ts";

const instants = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/g;

/** The core's instants are UTC to the millisecond; people read their own clock. */
export function withLocalTimes(
  text: string,
  about: { readonly now: number; readonly language: Language },
): string {
  return text.replaceAll(instants, (found) => {
    const at = parseInstant(found);
    return at === undefined ? found : momentText(at, about.now, about.language);
  });
}

interface SentenceProps {
  readonly text: string;
  readonly view: { readonly now: number; readonly language: Language };
  readonly class?: string;
}

/** A sentence of the core or the cluster, as text whatever is in it; the exact one is its title. */
export function Sentence({ text, view, class: name = "why" }: SentenceProps): VNode {
  return (
    <span class={name} dir="auto" title={text}>
      {withLocalTimes(text, view)}
    </span>
  );
}
