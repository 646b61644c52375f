import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

/**
 * One measured figure. If a raw limit was measured in the same run, the goal applies to `ratio`.
 */
export interface Figure {
  readonly name: string;
  readonly value: number;
  /** `m`: thousandths of a core. */
  readonly unit:
    | "%"
    | "MiB"
    | "kB"
    | "ms"
    | "s"
    | "requests/h"
    | "m"
    | "x"
    | "pods"
    | "requests"
    | "1/s";
  /** The same work with only the requests that are indispensable, in the same run. */
  readonly rawLimit?: number | undefined;
  readonly ratio?: number | undefined;
  /** The maximum: of the ratio if there is one, otherwise of the value. */
  readonly goal?: number | undefined;
}

export interface BenchResult {
  readonly bench: string;
  /** The conditions of the measurement: sizes, flags, way of access. */
  readonly setting: Readonly<Record<string, string | number | boolean>>;
  readonly figures: readonly Figure[];
}

/** Where the result of a bench is stored. */
export function resultFile(bench: string): URL {
  return new URL(`results/${bench}.json`, import.meta.url);
}

export function writeResult(result: BenchResult): void {
  mkdirSync(new URL("results/", import.meta.url), { recursive: true });
  writeFileSync(resultFile(result.bench), `${JSON.stringify(result, null, 2)}\n`);
}

export function readResult(bench: string): BenchResult {
  return JSON.parse(readFileSync(resultFile(bench), "utf8")) as BenchResult;
}

/** A time compared with the raw limit of the same run. */
export function beside(figure: {
  readonly name: string;
  readonly ms: number;
  readonly rawMs: number;
  readonly goal?: number | undefined;
}): Figure {
  const { name, ms, rawMs, goal } = figure;
  const ratio = rounded(ms / rawMs);
  return { name, value: rounded(ms), unit: "ms", rawLimit: rounded(rawMs), ratio, goal };
}

export function isMet({ value, ratio, goal }: Figure): boolean | undefined {
  return goal === undefined ? undefined : (ratio ?? value) <= goal;
}

export function rounded(value: number): number {
  return Number(value.toPrecision(4));
}
