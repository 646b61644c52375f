import { parseDuration, parseInstant } from "../../core/time/time.ts";
import type { VNode } from "../preact.ts";
import { momentText, spanText } from "./format.ts";
import { translated } from "./translate.ts";
import type { Language } from "./words.ts";

const writtenInstants = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/g;

/** `15m59s350ms`: of more than one part, or of milliseconds; a name is hardly ever one. */
const durations =
  /(?<![\w.-])(?=(?:\d+[hms]+){2}|\d+ms)(?:\d+h)?(?:\d+m(?!s))?(?:\d+s)?(?:\d+ms)?(?![\w.-])/g;

/** One of a single part, where the sentences of the core have nothing but a duration. */
const spans =
  /(?<=(?:at least|instead of|by about|to end|最小で|でなく|時間帯が|約) )\d+[hms](?![\w.-])/g;

/** The core's writtenInstants are UTC to the millisecond; people read their own clock. */
export function withLocalTimes(
  text: string,
  about: { readonly now: number; readonly language: Language },
): string {
  const local = text.replaceAll(writtenInstants, (found) => {
    const at = parseInstant(found);
    return at === undefined ? found : momentText(at, about.now, about.language);
  });
  const inWords = (found: string): string => {
    const span = parseDuration(found);
    return span === undefined ? found : spanText(span, about.language);
  };
  return local.replaceAll(durations, inWords).replaceAll(spans, inWords);
}

/** A sentence of the core as people read it: in their language, on their clock. */
export function readable(
  text: string,
  about: { readonly now: number; readonly language: Language },
): string {
  return withLocalTimes(translated(text, about.language), about);
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
      {readable(text, view)}
    </span>
  );
}
