/**
 * A sentence with places for its facts, in any language:
 *
 * - `{fact}` is a fact, and `{fact=text}` one that may be missing;
 * - `{count?one|many}` and `{count?one|two|many}` choose by a count;
 * - `[part]` is left out if one of its facts is missing; `[part|other]` is the other then.
 */
import { type FactKind, type FactOf, type Facts, isMissing, kindOf } from "./fact.ts";

/** `departures?one|many` and `detail=unknown` without what follows the name. */
type NameIn<N extends string> = N extends `${infer Name}?${infer Forms}`
  ? Name | NamesIn<`${Forms}}`>
  : N extends `${string}=${string}`
    ? never
    : N;

type NamesIn<T extends string> = T extends `${string}{${infer N}}${infer Rest}`
  ? NameIn<N> | NamesIn<Rest>
  : never;

type MayMiss<T extends string> = T extends `${string}{${infer N}}${infer Rest}`
  ? (N extends `${infer Name}=${string}` ? Name : never) | MayMiss<Rest>
  : never;

type WithoutOptions<T extends string> = T extends `${infer Before}[${string}]${infer Rest}`
  ? `${Before}${WithoutOptions<Rest>}`
  : T;

type InOptions<T extends string> = T extends `${string}[${infer Option}]${infer Rest}`
  ? NamesIn<Option> | InOptions<Rest>
  : never;

/** The facts of a sentence. */
export type FactsOf<T extends string, S> = {
  readonly [N in NamesIn<WithoutOptions<T>>]: FactOf<N, S>;
} & {
  readonly [N in Exclude<InOptions<T>, NamesIn<WithoutOptions<T>>> | MayMiss<T>]?:
    | FactOf<N, S>
    | undefined;
};

export type Piece =
  | string
  | { readonly fact: string; readonly kind: FactKind; readonly otherwise: string | undefined }
  | { readonly count: string; readonly forms: readonly (readonly Piece[])[] }
  | { readonly option: readonly Piece[]; readonly otherwise: readonly Piece[] };

const parsed = new Map<string, readonly Piece[]>();

export function piecesOf(sentence: string): readonly Piece[] {
  const found = parsed.get(sentence) ?? parse(sentence);
  parsed.set(sentence, found);
  return found;
}

function parse(sentence: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let rest = sentence;
  while (rest !== "") {
    const start = rest.search(/[[{]/);
    if (start === -1) return [...pieces, rest];
    if (start > 0) pieces.push(rest.slice(0, start));
    rest = rest.slice(start);
    const end = endOf(rest, rest.startsWith("[") ? "]" : "}");
    const inner = rest.slice(1, end);
    pieces.push(rest.startsWith("[") ? optionOf(inner) : factOf(inner));
    rest = rest.slice(end + 1);
  }
  return pieces;
}

/** Where this is for the first time outside the brackets that have been opened before. */
function endOf(text: string, mark: string): number {
  let depth = mark === "|" ? 0 : -1;
  for (let index = 0; index < text.length; index += 1) {
    const char = text.charAt(index);
    if (depth === 0 && char === mark) return index;
    if ("[{".includes(char)) depth += 1;
    if ("]}".includes(char)) depth -= 1;
  }
  return text.length;
}

function optionOf(inner: string): Piece {
  const [option = [], otherwise = []] = formsIn(inner);
  return { option, otherwise };
}

function factOf(inner: string): Piece {
  const [, name = "", mark, after = ""] = /^(\w+)([?=]?)(.*)$/s.exec(inner) ?? [];
  if (mark === "?") return { count: name, forms: formsIn(after) };
  return { fact: name, kind: kindOf(name), otherwise: mark === "=" ? after : undefined };
}

function formsIn(text: string): readonly (readonly Piece[])[] {
  const end = endOf(text, "|");
  const first = parse(text.slice(0, end));
  return end === text.length ? [first] : [first, ...formsIn(text.slice(end + 1))];
}

export interface Writing {
  /** Writes a sentence within a sentence, or several. */
  readonly saying: (value: unknown, kind?: "Saying" | "Enumeration") => string;
  /** Writes any other fact. */
  readonly fact: (kind: FactKind, value: unknown) => string;
  /** Instead of a fact that is missing. */
  readonly unknown: (kind: FactKind) => string;
}

export function worded(sentence: string, facts: Facts, writing: Writing): string {
  return filled(piecesOf(sentence), facts, writing);
}

function filled(pieces: readonly Piece[], facts: Facts, writing: Writing): string {
  let text = "";
  for (const piece of pieces) {
    if (typeof piece === "string") text += piece;
    else if ("fact" in piece) text += written(piece, facts[piece.fact], writing);
    else text += filled(chosen(piece, facts), facts, writing);
  }
  return text;
}

function written(
  { kind, otherwise }: Extract<Piece, { readonly fact: string }>,
  value: unknown,
  { saying, fact, unknown }: Writing,
): string {
  if (isMissing(value)) return otherwise ?? unknown(kind);
  return kind === "Saying" || kind === "Enumeration" ? saying(value, kind) : fact(kind, value);
}

/** Of the forms, the last one is for many, and for a count that is not known. */
function chosen(
  piece: Exclude<Piece, string | { readonly fact: string }>,
  facts: Facts,
): readonly Piece[] {
  if ("option" in piece) return hasAll(piece.option, facts) ? piece.option : piece.otherwise;
  const { count, forms } = piece;
  return forms.slice(0, -1)[Number(facts[count]) - 1] ?? forms.at(-1) ?? [];
}

function hasAll(pieces: readonly Piece[], facts: Facts): boolean {
  return pieces.every((piece) => {
    if (typeof piece === "string" || "option" in piece) return true;
    if ("forms" in piece) return !isMissing(facts[piece.count]);
    return piece.otherwise !== undefined || !isMissing(facts[piece.fact]);
  });
}
