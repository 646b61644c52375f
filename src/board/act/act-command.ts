import { holdAnnotation } from "../../core/cluster/node.ts";
import { formatInstant, type Instant } from "../../core/time/time.ts";
import type { BoardAct } from "./act.ts";

/** Which cluster a line is about, wherever it is typed: nobody's current context may be another. */
export interface CommandPlace {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
}

/** The line by which the same is done in a terminal, on the same cluster. */
export function commandOf(act: BoardAct, { kubeconfig, context }: CommandPlace = {}): string {
  return [
    lineOf(act),
    ...(kubeconfig === undefined ? [] : [`--kubeconfig ${word(kubeconfig)}`]),
    ...(context === undefined ? [] : [`--context ${word(context)}`]),
  ].join(" ");
}

function lineOf(act: BoardAct): string {
  switch (act.kind) {
    case "Hold":
      return `kubectl annotate node ${word(act.node)} --overwrite ${word(`${holdAnnotation}=${holdValue(act.until)}`)}`;
    case "ReleaseHold":
      return `kubectl annotate node ${word(act.node)} ${holdAnnotation}-`;
    case "Depart":
      return [
        `lastcall depart ${word(act.node)}`,
        ...(act.at === null ? [] : [`--at ${briefInstant(act.at)}`]),
        ...(act.by === null ? [] : [`--by ${briefInstant(act.by)}`]),
      ].join(" ");
    case "Freeze":
      return `kubectl patch departurepolicy ${word(act.policy)} --type merge -p ${word(freezePatch(act.until))}`;
    case "Withdraw":
      return `kubectl delete departure ${word(act.departure)}`;
  }
}

/** As people write it: to the second where it is a whole one. */
export function briefInstant(at: Instant): string {
  return formatInstant(at).replace(".000Z", "Z");
}

export function holdValue(until: Instant | null): string {
  return until === null ? "true" : briefInstant(until);
}

function freezePatch(until: Instant | null): string {
  const freezeUntil = until === null ? null : briefInstant(until);
  return JSON.stringify({ spec: { gates: { freezeUntil } } });
}

/** As one word of a shell, whatever is in it. */
function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
