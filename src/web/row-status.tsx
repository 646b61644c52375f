/** Whether a row of the next departures leaves as planned, and what keeps it from that. */
import { type BoardRow, isDryRun } from "../board/stream.ts";
import type { VNode } from "./preact.ts";
import type { PageView } from "./view-state.ts";
import { isolated, momentText } from "./words/time-text.ts";

interface RowProps {
  readonly view: PageView;
  readonly row: BoardRow;
}

export interface RowStatus {
  /** `Well`: it leaves as planned. `Planned`: it has a time in a plan that cannot be kept. */
  readonly kind: "Held" | "Planned" | "Well";
  readonly text: string;
}

export function rowStatus(row: BoardRow, view: PageView): RowStatus {
  const odd = whatIsOdd(row, view);
  if (odd !== undefined) return { kind: "Held", text: odd };
  const card = view.picture.policies.find(({ name }) => name === row.policy);
  // A plan that cannot be kept as a whole is no schedule.
  return card === undefined || card.standing === "InTime"
    ? { kind: "Well", text: view.words.onSchedule }
    : { kind: "Planned", text: view.words.inPlan };
}

/** Undefined if nothing keeps it from leaving at its time. */
function whatIsOdd(row: BoardRow, view: PageView): string | undefined {
  const { words, language, now } = view;
  const { hold, heldBackTo, frozenUntil, plannedBy, departAt } = row;
  const time = (at: number): string => momentText(at, now, language);
  if (isDryRun(row, view.picture)) return words.dryRun;
  if (row.state === "Held") {
    return `${words.held}: ${words.reasons[row.reason] ?? row.reason}`;
  }
  if (frozenUntil !== null) return words.frozenUntil(time(frozenUntil));
  if (heldBackTo !== null) return words.heldBackTo(time(heldBackTo));
  const untilAt = hold?.untilAt ?? null;
  if (untilAt !== null && untilAt > now) return words.holdUntil(time(untilAt));
  if (plannedBy !== null && plannedBy !== "Spaced") return words.reasons[plannedBy];
  if (departAt !== null && isOverdue(departAt, view)) return words.overdue;
  return undefined;
}

/**
 * A working controller starts within seconds; on a fast clock, the page samples few of its hours.
 */
const lateMs = 60_000;

function isOverdue(departAt: number, { now, rate }: PageView): boolean {
  return now - departAt > lateMs * Math.max(1, rate);
}

const classes: Readonly<Record<RowStatus["kind"], string>> = {
  Held: "held",
  Planned: "dim",
  Well: "good",
};

/** Where all is well, a mark: among a thousand rows, words are left for what is not. */
export function StatusText({ view, row }: RowProps): VNode {
  const { kind, text } = rowStatus(row, view);
  return (
    <>
      <span class={classes[kind]} title={text}>
        {kind === "Well" ? (
          <>
            <span aria-hidden="true">✓</span>
            <span class="unseen">{text}</span>
          </>
        ) : (
          text
        )}
      </span>
      {row.state === "Held" && row.reason === "OnHold" ? <HoldNote view={view} row={row} /> : null}
    </>
  );
}

/** Who holds a node, and from when until when. */
export function HoldNote({ view, row: { hold } }: RowProps): VNode | null {
  const { words, language, now } = view;
  if (hold === null || (hold.untilAt !== null && hold.untilAt <= now)) return null;
  const { by, sinceAt, untilAt } = hold;
  const time = (at: number | null) => (at === null ? null : momentText(at, now, language));
  // The author chose this name: isolate its text direction from the rest.
  const who = by === null ? null : isolated(by);
  return <span class="hold-note dim">{words.heldBy(who, time(sinceAt), time(untilAt))}</span>;
}
