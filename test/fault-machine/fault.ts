import type { Draw } from "./draw.ts";
import type { Stage } from "./stage.ts";

/** A row of the table of faults. */
export interface FaultKind {
  /** What it does, as a clause of a story. */
  readonly says: string;
  /** Draws the plain data that this one fault needs, such as which node it is about. */
  readonly draw: (from: { readonly draw: Draw; readonly nodes: number }) => FaultFields;
  /** Begins it, and returns what ends it; undefined if there is nothing to end. */
  readonly begin: (stage: Stage, fields: FaultFields) => (() => void) | undefined;
}

export type FaultFields = Readonly<Record<string, unknown>>;

/** A row with typed fields; the table forgets their type. */
export function faultKind<F extends FaultFields>(row: {
  readonly says: string;
  readonly draw: (from: { readonly draw: Draw; readonly nodes: number }) => F;
  readonly begin: (stage: Stage, fields: F) => (() => void) | undefined;
}): FaultKind {
  return row as unknown as FaultKind;
}

/** Adds a rule, and returns what removes it. */
export function withRule<R>(rules: Set<R>, rule: R): () => void {
  rules.add(rule);
  return () => rules.delete(rule);
}

/** A node by its number; in half of the cases the one whose departure makes the fault begin. */
export function drawNode({ draw, nodes }: { draw: Draw; nodes: number }): number {
  return draw.chance(0.5) ? -1 : draw.between(0, nodes - 1);
}
