/** A sentence is its own inverse: what it was filled with is found again in the text. */
import { type Facts, factPatterns } from "../../core/reason/fact.ts";
import { type Piece, piecesOf, type Writing } from "../../core/reason/wording.ts";

/** The facts of a sentence in a text. */
export interface Recognized {
  readonly facts: Facts;
  /** How much of the text is the sentence's own: the more, the surer is it this one. */
  readonly own: number;
}

/** Undefined for a text that is another sentence. */
export type Recognizer = (text: string) => Recognized | undefined;

/** A fact for each group of the expression; with a number if the group is a form for that many. */
interface FactGroup {
  readonly fact: string;
  readonly count?: number;
}

/** `unknown` is what is written instead of a fact that is missing. */
export function recognizer(sentence: string, unknown: Writing["unknown"]): Recognizer {
  const groups: FactGroup[] = [];
  const source = sourceOf(piecesOf(sentence), { groups, unknown });
  const pattern = new RegExp(`^${source}$`, "s");
  return (text) => {
    const match = pattern.exec(text);
    return match === null ? undefined : foundIn(match, groups);
  };
}

interface Source {
  readonly groups: FactGroup[];
  readonly unknown: Writing["unknown"];
}

function sourceOf(pieces: readonly Piece[], source: Source): string {
  return pieces.map((piece) => sourceOfPiece(piece, source)).join("");
}

function sourceOfPiece(piece: Piece, source: Source): string {
  const { groups, unknown } = source;
  if (typeof piece === "string") return escaped(piece);
  if ("option" in piece) {
    return `(?:${sourceOf(piece.option, source)}|${sourceOf(piece.otherwise, source)})`;
  }
  if ("fact" in piece) {
    const { fact, kind, otherwise = unknown(kind) } = piece;
    groups.push({ fact });
    return `(?:${escaped(otherwise)}|(${factPatterns[kind]}))`;
  }
  const forms = piece.forms.map((form, place) => {
    // The form for many says elsewhere how many.
    if (place === piece.forms.length - 1) return sourceOf(form, source);
    groups.push({ fact: piece.count, count: place + 1 });
    return `(${sourceOf(form, source)})`;
  });
  return `(?:${forms.join("|")})`;
}

function foundIn([text, ...texts]: readonly string[], groups: readonly FactGroup[]): Recognized {
  const facts: Record<string, string | number> = {};
  let own = text?.length ?? 0;
  for (const [place, { fact, count }] of groups.entries()) {
    const found = texts[place];
    if (found === undefined || found === "") continue;
    facts[fact] ??= count ?? found;
    if (count === undefined) own -= found.length;
  }
  return { facts, own };
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}
