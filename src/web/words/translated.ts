/** What the core says, in the page's language; any other text is shown unchanged. */
import { phaseEvents } from "../../core/departure/ledger.ts";
import {
  english,
  englishWriter,
  type Saying,
  type Sentence,
  sentenceIn,
  unknownInEnglish,
} from "../../core/reason/english.ts";
import { factText } from "../../core/reason/fact.ts";
import { type Writing, worded } from "../../core/reason/wording.ts";
import { japanese } from "./japanese.ts";
import { type Recognizer, recognizer } from "./recognizer.ts";
import type { Language } from "./time-text.ts";

/** `fact` writes what is no sentence, as in the viewer's units. */
export function translated(
  saying: Saying,
  language: Language,
  fact: Writing["fact"] = factText,
): string {
  if (language === "en") return englishWriter(fact)(saying);
  const written = (value: unknown): string => {
    if (typeof value === "string") return ofText(value, written);
    if (Array.isArray(value)) return value.map(written).join("、");
    const said = value as Sentence;
    return worded(sentenceIn(japanese, said.says), said, writing);
  };
  const writing = { saying: written, unknown: () => "不明", fact };
  return written(saying);
}

/** What has been recognized in a text; null if nothing has. */
const known = new Map<string, Saying | null>();
/** The size of the cache; a fleet of thousands is viewed page by page. */
const mostKnown = 2000;

/** Longer than any sentence of the core: longer texts from a cluster are not searched for one. */
const longest = 1500;

function ofText(text: string, written: (saying: Saying) => string): string {
  if (text === "" || text.length > longest) return text;
  const bare = text.replace(/\.$/, "");
  let said = known.get(bare);
  if (said === undefined) {
    said = saidIn(bare) ?? null;
    if (known.size >= mostKnown) known.clear();
    known.set(bare, said);
  }
  return said === null ? text : `${written(said)}${text === bare ? "" : "。"}`;
}

/**
 * A sentence that is only known as English text, as in a Departure's status, is recognized by the
 * table that it was written from. Undefined for what the core does not say.
 */
function saidIn(text: string): Saying | undefined {
  const { said } = readingOf(withoutEvent(text));
  return said.every((part) => typeof part === "string") ? undefined : said;
}

/** In a timeline the event precedes its sentence, as in `Due: n1 is leaving now`. */
function withoutEvent(text: string): string {
  const [, event = "", rest = ""] = /^([A-Z][A-Za-z]+): (.+)$/s.exec(text) ?? [];
  return phaseEvents.some((one) => one === event) ? rest : text;
}

interface ListReading {
  readonly said: readonly (string | Sentence)[];
  /** How much of the text is the sentences' own, and not a fact. */
  readonly own: number;
}

/** More than the core says at once. */
const mostParts = 10;

/**
 * A list of sentences. A semicolon may be within one: of all ways to read the list, the one with
 * the fewest facts.
 */
function readingOf(text: string): ListReading {
  const parts = text.split("; ");
  const none: ListReading = { said: [text], own: 0 };
  if (parts.length > mostParts) return none;
  // Of the last part, of the last two, and so on.
  const readings: ListReading[] = [{ said: [], own: 0 }];
  for (const start of [...parts.keys()].toReversed()) {
    const found = readings.map((rest, place) => {
      const head = parts.slice(start, parts.length - place).join("; ");
      const { said = head, own = 0 } = recognized(head) ?? {};
      return { said: [said, ...rest.said], own: own + rest.own };
    });
    readings.push(found.reduce((best, one) => (one.own > best.own ? one : best)));
  }
  return readings.at(-1) ?? none;
}

interface Known {
  readonly says: string;
  readonly find: Recognizer;
}

let sentences: readonly Known[] | undefined;

/** The sentence with the fewest facts, if several look like the text. */
function recognized(text: string): { readonly said: Sentence; readonly own: number } | undefined {
  sentences ??= Object.entries(english).flatMap(([group, all]) =>
    Object.entries(all).map(([key, one]) => ({
      says: `${group}.${key}`,
      find: recognizer(one, unknownInEnglish),
    })),
  );
  let best: { readonly said: Sentence; readonly own: number } | undefined;
  for (const { says, find } of sentences) {
    const found = find(text);
    if (found === undefined || found.own <= (best?.own ?? 0)) continue;
    best = { said: { says, ...found.facts } as Sentence, own: found.own };
  }
  return best;
}
