import { withCutNames } from "../../board/name-parts.ts";
import { reasonWords } from "../../board/reason-words.ts";
import type { BoardPicture, PolicyCard } from "../../board/stream.ts";
import type { HeadlineTone } from "../../core/plan/headline.ts";
import { inEnglish } from "../../core/reason/english.ts";
import { formatInstant, type Instant, parseInstant } from "../../core/time/time.ts";
import { cell, type StyledLine, type Tone, wrappedTo } from "../command-line/terminal.ts";

/** How many policies are listed; the rest are counted. */
const mostPolicies = 3;
/** On how many lines a sentence is told at most. */
const mostLines = 3;
/** With fewer rows, nodes matter more than what is as it should be, which gets one line. */
const rowsForAll = 20;

interface HeadlineLook {
  readonly now: Instant;
  readonly columns: number;
  readonly rows: number;
}

const tones: Readonly<Record<HeadlineTone, Tone>> = { Good: "plain", Note: "warn", Bad: "bad" };

/** What a person who looks once has to know, as on the page. */
export function headlineLines(
  { fleet, policies }: BoardPicture,
  { now, columns, rows }: HeadlineLook,
): readonly StyledLine[] {
  // What a person has to look at is never among those that are only counted.
  const about = fleet.headline
    .filter(({ policy }) => policy !== null)
    .toSorted((a, b) => Number(b.tone === "Bad") - Number(a.tone === "Bad"));
  const rest = about.length - mostPolicies;
  const shown = [
    ...about.slice(0, mostPolicies),
    ...fleet.headline.filter(
      ({ policy, tone }) => policy === null && (tone !== "Good" || rows >= rowsForAll),
    ),
  ];
  const names = shown.map(({ subject, policy }) => policy ?? subject);
  const width = Math.min(Math.max(...names.map((name) => name.length)), Math.floor(columns / 4));
  const mostOfName = Math.floor(columns / 3);
  const lines = shown.map((one): readonly StyledLine[] => {
    const card = policies.find(({ name }) => name === one.policy);
    const isClosed = card !== undefined && isShut(card, now);
    const waiting = one.waiting.map(
      ({ reason, departures }) => `${reasonWords[reason] ?? reason} (${departures})`,
    );
    const held = waiting.length === 0 ? "" : `Held: ${waiting.join(", ")}`;
    const text = [isClosed ? "Closed for departures" : "", inEnglish(one.says), held];
    const said = withShortTimes(text.filter(Boolean).join(". "));
    const isBad = one.tone === "Bad";
    const parts = wrappedTo(isBad ? said : withCutNames(said, mostOfName), {
      ...{ columns: columns - width - 4, lines: isBad || rows >= rowsForAll ? mostLines : 1 },
    });
    return parts.map((part, index) => {
      const name = index === 0 ? fitted(one.policy ?? one.subject, width) : " ".repeat(width);
      return [cell(` ${name}  `, "strong"), cell(part, tones[one.tone])];
    });
  });
  const more = rest > 0 ? [[cell(` and ${rest} more policies`, "dim")]] : [];
  return [...lines.slice(0, mostPolicies).flat(), ...more, ...lines.slice(mostPolicies).flat()];
}

function fitted(text: string, width: number): string {
  return text.length > width ? `${text.slice(0, width - 1)}…` : text.padEnd(width);
}

/** The core writes instants to the millisecond. */
function withShortTimes(text: string): string {
  return text.replaceAll(/\d{4}-\d{2}-\d{2}T\S+?Z/g, (written) => {
    const at = parseInstant(written);
    return at === undefined ? written : dayAndTime(at);
  });
}

function isShut({ shut }: PolicyCard, now: Instant): boolean {
  return shut.some(({ startAt, endAt, why }) => why === "Window" && startAt <= now && now < endAt);
}

/** `11-20 05:55`. */
export function dayAndTime(at: Instant): string {
  return formatInstant(at).slice(5, 16).replace("T", " ");
}
