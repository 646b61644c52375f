import { holdAnnotation } from "../core/cluster/hold.ts";
import { formatInstant, type Instant } from "../core/time/time.ts";
import type { BoardAct } from "./act.ts";

/** The line by which the same is done in a terminal. */
export function commandOf(act: BoardAct): string {
  switch (act.kind) {
    case "Hold":
      return `kubectl annotate node ${word(act.node)} --overwrite ${word(`${holdAnnotation}=${holdValue(act.until)}`)}`;
    case "ReleaseHold":
      return `kubectl annotate node ${word(act.node)} ${holdAnnotation}-`;
    case "Depart":
      return [
        `lastcall depart ${word(act.node)}`,
        ...(act.at === null ? [] : [`--at ${formatInstant(act.at)}`]),
        ...(act.by === null ? [] : [`--by ${formatInstant(act.by)}`]),
      ].join(" ");
    case "Freeze":
      return `kubectl patch departurepolicy ${word(act.policy)} --type merge -p ${word(freezePatch(act.until))}`;
    case "Withdraw":
      return `kubectl delete departure ${word(act.departure)}`;
  }
}

export function holdValue(until: Instant | null): string {
  return until === null ? "true" : formatInstant(until);
}

function freezePatch(until: Instant | null): string {
  const freezeUntil = until === null ? null : formatInstant(until);
  return JSON.stringify({ spec: { gates: { freezeUntil } } });
}

/** As one word of a shell, whatever is in it. */
function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
