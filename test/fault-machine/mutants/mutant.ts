/**
 * Deliberate bugs, each of a kind that was once real: a change of a few characters in `src`.
 * `npm run sim:mutants` says which checker catches each, and after how many seeds.
 */
export interface Mutant {
  /** What the controller does wrong. */
  readonly name: string;
  /** Several, where a second guard stands behind the first. */
  readonly edits: readonly Edit[];
  /** The kinds of faults without which it makes no difference. */
  readonly kinds: readonly string[];
}

export interface Edit {
  readonly file: string;
  /** Occurs once in the file. */
  readonly from: string;
  readonly to: string;
}

/** A fault that changes nothing about departures: for bugs that need none. */
export const anyKind: readonly string[] = ["refuse-events"];

export function edit(file: string, from: string, to: string): Edit {
  return { file: `src/${file}`, from, to };
}
