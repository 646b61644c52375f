import type { NodeDeparture, NodeDepartures } from "../../board/node-page.ts";
import { reasonWords } from "../../board/reason-words.ts";
import {
  type BoardPicture,
  type BoardRow,
  isDryRun,
  type PastDeparture,
  type PodCounts,
} from "../../board/stream.ts";
import { inEnglish } from "../../core/reason/english.ts";
import { between, type Instant } from "../../core/time/time.ts";
import {
  cell,
  relativeTime,
  type StyledLine,
  spanText,
  type Tone,
  wrapped,
} from "../command-line/terminal.ts";
import { dayAndTime } from "./terminal-headline.ts";
import { holdText, toneOf } from "./terminal-table.ts";

interface NodeLook {
  readonly now: Instant;
  readonly columns: number;
  /** The node's departures with their steps. */
  readonly of: NodeDepartures | undefined;
}

/** A node in full: where it is, its departure and why, and the steps of its departures. */
export function nodeLines(
  row: BoardRow,
  picture: Pick<BoardPicture, "past" | "policies">,
  { now, columns, of }: NodeLook,
): readonly StyledLine[] {
  const facts = factsOf(row, { picture, now });
  const width = Math.max(...facts.map(([name]) => name.length));
  const past = picture.past.filter(({ node }) => node === row.node);
  const isOwn = ({ nodeUid }: PastDeparture): boolean => nodeUid === row.uid;
  const machine = { steps: of?.departures ?? [], past: past.filter(isOwn) };
  const earlier = { steps: of?.earlier ?? [], past: past.filter((one) => !isOwn(one)) };
  const hasEarlier = earlier.steps.length + earlier.past.length > 0;
  return [
    [cell(` ${row.node}`, "strong")],
    [],
    ...facts.flatMap(([name, text, tone]) =>
      wrapped(text, Math.max(1, columns - width - 4)).map((part, index) => [
        cell(` ${(index === 0 ? name : "").padEnd(width)}  `, "dim"),
        cell(part, tone),
      ]),
    ),
    ...machineLines(machine, columns),
    ...(hasEarlier ? [[], [cell(" Earlier machines of this name", "strong")]] : []),
    ...machineLines(earlier, columns),
  ];
}

interface MachineDepartures {
  readonly steps: readonly NodeDeparture[];
  readonly past: readonly PastDeparture[];
}

function machineLines({ steps, past }: MachineDepartures, columns: number): readonly StyledLine[] {
  return [
    ...steps.flatMap((departure) => stepLines(departure, columns)),
    ...(past.length === 0 ? [] : [[], [cell(" Departed", "strong")]]),
    ...past.flatMap(({ endedAt, outcome, explain }) =>
      entryLines(dayAndTime(endedAt), `${outcome}: ${explain}`, columns),
    ),
  ];
}

type NodeFactLine = readonly [name: string, text: string, tone: Tone];

interface FactLook {
  readonly picture: Pick<BoardPicture, "policies">;
  readonly now: Instant;
}

function factsOf(row: BoardRow, { picture, now }: FactLook): readonly NodeFactLine[] {
  const { zone, pool, policy, bornAt, cause, phase, hold, pods } = row;
  const all: readonly (readonly [string, string | null, Tone?])[] = [
    ["Zone", zone],
    ["Pool", pool],
    ["Policy", isDryRun(row, picture) ? `${policy} (dry run: it does not leave)` : policy],
    ["Age", bornAt === null ? null : spanText(Math.max(0, between(bornAt, now)))],
    ["Departure", row.departure],
    ["Cause", cause],
    ["Phase", phase],
    ["Leaves", timeText(row.departAt, now), toneOf(row)],
    ["Held back to", timeText(row.heldBackTo, now), "warn"],
    ["Deadline", timeText(row.deadlineAt, now), row.noticedAt === null ? "plain" : "bad"],
    ["Reason", reasonWords[row.reason] ?? row.reason, toneOf(row)],
    ["", inEnglish(row.explain)],
    ["Hold", hold === null ? null : `${holdText(hold)} (${hold.mark})`, "warn"],
    ["Pods", pods === null ? null : podText(pods)],
  ];
  return all.flatMap(([name, text, tone = "plain"]) => (text ? [[name, text, tone] as const] : []));
}

function timeText(at: Instant | null, now: Instant): string | null {
  return at === null ? null : `${dayAndTime(at)} UTC, ${relativeTime(at, now)}`;
}

function podText({ total, left, ...counts }: PodCounts): string {
  const { evicted, forced, waiting, blocked, cut, killed, leftBehind } = counts;
  const said: readonly (readonly [number, string])[] = [
    ...[[evicted, "evicted"] as const, [waiting, "terminating"] as const],
    ...[[blocked, "blocked"] as const, [forced, "forced"] as const, [cut, "cut short"] as const],
    ...[[killed, "killed"] as const, [leftBehind, "left behind"] as const],
  ];
  const parts = said.flatMap(([count, what]) => (count === 0 ? [] : [`${count} ${what}`]));
  return [`${left} of ${total} still there`, ...parts].join(", ");
}

/** The steps of a departure, oldest first. */
function stepLines({ name, steps }: NodeDeparture, columns: number): readonly StyledLine[] {
  if (steps.length === 0) return [];
  return [
    [],
    [cell(` Steps of ${name}`, "strong")],
    ...steps.flatMap(({ at, step, result }) =>
      entryLines(dayAndTime(at), result ? `${step}: ${result}` : step, columns),
    ),
  ];
}

function entryLines(time: string, text: string, columns: number): readonly StyledLine[] {
  return wrapped(text, Math.max(1, columns - time.length - 4)).map((part, index) => [
    cell(` ${(index === 0 ? time : "").padEnd(time.length)}  `, "dim"),
    cell(part),
  ]);
}
