/**
 * The sentences in English, by their keys. The page has them in other languages, by the same keys.
 */
import { englishAct, englishChange } from "./english-act.ts";
import { englishApi, englishVerb } from "./english-api.ts";
import { englishDetail } from "./english-detail.ts";
import { englishFleet, englishHeadline, englishLimit } from "./english-fleet.ts";
import { englishNode } from "./english-node.ts";
import { englishNotPlanned, englishPlanned } from "./english-plan.ts";
import { englishDrain, englishPod } from "./english-pod.ts";
import { type FactKind, factText } from "./fact.ts";
import { type FactsOf, type Writing, worded } from "./wording.ts";

export const english = {
  act: englishAct,
  api: englishApi,
  change: englishChange,
  detail: englishDetail,
  drain: englishDrain,
  fleet: englishFleet,
  headline: englishHeadline,
  limit: englishLimit,
  node: englishNode,
  notPlanned: englishNotPlanned,
  planned: englishPlanned,
  pod: englishPod,
  verb: englishVerb,
} as const;

type English = typeof english;

/** The sentences in one language. */
export type SentenceTable = {
  readonly [G in keyof English]: Readonly<Record<keyof English[G], string>>;
};

/** `fleet.AllLate` */
export type Key = { [G in keyof English]: `${G}.${keyof English[G] & string}` }[keyof English];

/** A sentence within another; it has been a `Sentence` before. */
interface Inner {
  readonly says: Key;
}

type Named<G extends keyof English, K extends keyof English[G] & string> = {
  readonly says: `${G}.${K}`;
} & FactsOf<English[G][K] & string, Inner>;

/** A sentence as data: its key, and the facts that it names. */
export type Sentence = {
  [G in keyof English]: {
    [K in keyof English[G] & string]: Named<G, K>;
  }[keyof English[G] & string];
}[keyof English];

/** SentenceTable, one after the other; a text is one already. */
export type Saying = string | Sentence | readonly (string | Sentence)[];

/** A sentence of a group whose sentences all get the same facts, and use those that they need. */
export function sentenceOf(says: Key, facts: object): Sentence {
  return { says, ...facts } as Sentence;
}

export function inEnglish(saying: Saying): string {
  return plainEnglish(saying);
}

const plainEnglish = englishWriter(factText);

/** `fact` writes what is no sentence, as in the reader's own units. */
export function englishWriter(fact: Writing["fact"]): (saying: Saying) => string {
  const written = (value: unknown, kind?: FactKind): string => {
    if (typeof value === "string") return value;
    if (Array.isArray(value)) {
      return value.map((one) => written(one)).join(kind === "Enumeration" ? ", " : "; ");
    }
    const said = value as Sentence;
    return worded(sentenceIn(english, said.says), said, writing);
  };
  const writing = { saying: written, unknown: unknownInEnglish, fact };
  return written;
}

/** The sentence of a key, in the language of the table. */
export function sentenceIn(sentences: SentenceTable, says: Key): string {
  const dot = says.indexOf(".");
  const group: Readonly<Record<string, string>> = sentences[says.slice(0, dot) as keyof English];
  return group[says.slice(dot + 1)] ?? says;
}

/** Written instead of a fact that is missing. */
export function unknownInEnglish(kind: FactKind): string {
  return kind === "Instant" || kind === "BriefInstant" ? "an unknown time" : "unknown";
}
