/**
 * The acts that a person can perform from the board. The page writes them, and the server reads
 * them.
 */

import { holdAnnotation } from "../../core/cluster/node.ts";
import type { DrainPlanReport } from "../../core/drain-plan/drain-plan-report.ts";
import { type Fields, isFields, numberOf, textOf } from "../../core/json/json-field.ts";
import type { Saying, Sentence } from "../../core/reason/english.ts";
import { briefInstant, type Instant, instant } from "../../core/time/time.ts";

export type BoardAct =
  /** Null: indefinitely. */
  | {
      readonly kind: "Hold";
      readonly node: string;
      readonly uid: string;
      readonly until: Instant | null;
    }
  | { readonly kind: "ReleaseHold"; readonly node: string; readonly uid: string }
  | {
      readonly kind: "Depart";
      readonly node: string;
      readonly uid: string;
      /** Null: now. */
      readonly at: Instant | null;
      readonly by: Instant | null;
    }
  /** Null ends the freeze. */
  | { readonly kind: "Freeze"; readonly policy: string; readonly until: Instant | null }
  | { readonly kind: "Withdraw"; readonly departure: string; readonly uid: string };

/** The effect of an act, before it is performed. */
export interface ActPreview {
  /** Its effects, one sentence each. */
  readonly says: readonly Sentence[];
  /** Why the act cannot be performed; null if it can. */
  readonly refusal: Sentence | null;
  /** The same act as a command for a terminal. */
  readonly command: string;
  /** How the pods would leave; null if none do. */
  readonly drain: DrainPlanReport | null;
  /** The state that the preview is based on; the act is refused if that has changed. */
  readonly seen: string;
}

export interface ActRequest {
  readonly act: BoardAct;
  /** Identifies this act, however often it is sent. */
  readonly key: string;
  readonly seen: string;
}

export type ActAnswer =
  | { readonly kind: "Done"; readonly says: Saying }
  /** Refused by the API server, or because the state has changed since the preview. */
  | { readonly kind: "Refused"; readonly says: Saying };

/** Undefined for anything that is not an act. */
export function readAct(json: unknown): BoardAct | undefined {
  if (!isFields(json)) return undefined;
  const { kind, node, uid } = json;
  switch (kind) {
    case "Hold":
      return isText(node) && isText(uid) && hasInstant(json, "until")
        ? { kind, node, uid, until: instantIn(json, "until") }
        : undefined;
    case "ReleaseHold":
      return isText(node) && isText(uid) ? { kind, node, uid } : undefined;
    case "Depart":
      return isText(node) && isText(uid) && hasInstant(json, "at") && hasInstant(json, "by")
        ? { kind, node, uid, at: instantIn(json, "at"), by: instantIn(json, "by") }
        : undefined;
    case "Freeze":
      return isText(json.policy) && hasInstant(json, "until")
        ? { kind, policy: json.policy, until: instantIn(json, "until") }
        : undefined;
    case "Withdraw":
      return isText(json.departure) && isText(uid)
        ? { kind, departure: json.departure, uid }
        : undefined;
    default:
      return undefined;
  }
}

export function readActRequest(json: unknown): ActRequest | undefined {
  if (!isFields(json)) return undefined;
  const act = readAct(json.act);
  const [key, seen] = [textOf(json.key), textOf(json.seen)];
  if (act === undefined || key === undefined || seen === undefined) return undefined;
  return key.length < 8 || key.length > 100 ? undefined : { act, key, seen };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Year 9999, the last that RFC 3339 supports. */
const lastAt = 253_402_300_799_000;

function hasInstant(fields: Fields, name: string): boolean {
  if (fields[name] === null) return true;
  const value = numberOf(fields[name]);
  return value !== undefined && Number.isInteger(value) && value > 0 && value <= lastAt;
}

function instantIn(fields: Fields, name: string): Instant | null {
  const value = fields[name];
  return typeof value === "number" ? instant(value) : null;
}

/**
 * The cluster that a command is for, named because the terminal's current context may be another.
 */
export interface CommandPlace {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
}

/** The command that does the same in a terminal, on the same cluster. */
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
        ...startOf(act),
        ...(act.by === null ? [] : [`--by ${briefInstant(act.by)}`]),
      ].join(" ");
    case "Freeze":
      return `kubectl patch departurepolicy ${word(act.policy)} --type merge -p ${word(freezePatch(act.until))}`;
    case "Withdraw":
      return `kubectl delete departure ${word(act.departure)}`;
  }
}

/** With `--by` alone, an earlier request would keep its own start. */
function startOf({ at, by }: Extract<BoardAct, { kind: "Depart" }>): readonly string[] {
  if (at !== null) return [`--at ${briefInstant(at)}`];
  return by === null ? [] : ["--at now"];
}

export function holdValue(until: Instant | null): string {
  return until === null ? "true" : briefInstant(until);
}

function freezePatch(until: Instant | null): string {
  const freezeUntil = until === null ? null : briefInstant(until);
  return JSON.stringify({ spec: { gates: { freezeUntil } } });
}

/** Quotes a text as one word of a shell command, whatever it contains. */
function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
