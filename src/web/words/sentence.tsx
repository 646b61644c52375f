/** The core's sentences for the viewer: in their language, on their clock. */
import { withCutNames } from "../../board/name-parts.ts";
import { inEnglish, type Saying } from "../../core/reason/english.ts";
import { type FactKind, factText } from "../../core/reason/fact.ts";
import { parseDuration, parseInstant } from "../../core/time/time.ts";
import type { VNode } from "../preact.ts";
import { type Language, momentText, spanText } from "./time-text.ts";
import { translated } from "./translated.ts";

/** What somebody has written or is to write: a value in quotes, and the forms that are expected. */
const literal = /"(?:[^"\\]|\\.)*"|\bexpected [^;]*/;

const writtenInstant = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z/;

/** `15m59s350ms`: with more than one part, or milliseconds; hardly ever a name. */
const duration =
  /(?<![\w.-])(?=(?:\d+[hms]+){2}|\d+ms)(?:\d+h)?(?:\d+m(?!s))?(?:\d+s)?(?:\d+ms)?(?![\w.-])/;

const times = new RegExp(
  `${literal.source}|(?<at>${writtenInstant.source})|(?<span>${duration.source})`,
  "g",
);

/**
 * The core writes instants in UTC to the millisecond; people read their own clock. What they are to
 * type stays as it is.
 */
export function withLocalTimes(
  text: string,
  about: { readonly now: number; readonly language: Language },
): string {
  return text.replaceAll(times, (found, ...rest) => {
    const { at, span } = rest.at(-1) as { readonly at?: string; readonly span?: string };
    const instant = parseInstant(at ?? "");
    if (instant !== undefined) return momentText(instant, about.now, about.language);
    const ms = span === undefined ? undefined : parseDuration(span);
    return ms === undefined ? found : spanText(ms, about.language);
  });
}

/** A sentence of the core for the viewer: in their language, on their clock. */
export function readable(
  text: Saying,
  about: { readonly now: number; readonly language: Language },
): string {
  const { language } = about;
  const fact = (kind: FactKind, value: unknown): string =>
    kind === "Span" && typeof value === "number"
      ? spanText(value, language)
      : factText(kind, value);
  return withLocalTimes(translated(text, language, fact), about);
}

interface SentenceProps {
  readonly text: Saying;
  readonly view: { readonly now: number; readonly language: Language };
  readonly class?: string;
}

/** A sentence of the core or the cluster, always as text; its title is the exact English. */
export function Sentence({ text, view, class: name = "why" }: SentenceProps): VNode {
  return (
    <span class={name} dir="auto" title={inEnglish(text)}>
      {readable(text, view)}
    </span>
  );
}

/** Longer names are cut in a list, which is read at a glance. */
const nameColumns = 26;

/** As `readable`, with its long names cut; no line ends within such a name. */
export function readableAtOnce(
  text: Saying,
  about: { readonly now: number; readonly language: Language },
): string {
  return withCutNames(readable(text, about), nameColumns).replaceAll(/[^\s(]*…\S*/g, (name) =>
    name.replaceAll(/[-…](?=\S)/g, "$&\u2060"),
  );
}

/** As `Sentence`, with its long names cut. */
export function BriefSentence({ text, view }: Omit<SentenceProps, "class">): VNode {
  return (
    <span class="why" dir="auto" title={inEnglish(text)}>
      {readableAtOnce(text, view)}
    </span>
  );
}
