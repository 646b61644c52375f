import type { Clock } from "../contracts/clock.ts";
import type { Rng } from "../core/rng.ts";
import type { ManifestFiles } from "./read-manifests.ts";

/** What a command has of the world outside: handed in by `main.ts`, made up by tests. */
export interface CommandIo {
  /** Data goes to stdout, everything else to stderr. */
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly files: CommandFiles;
  /** The same files, with the limits that manifests need. */
  readonly manifests: ManifestFiles;
  /** Whether stdout is a terminal, and whether colour is wanted on it. */
  readonly isTerminal: boolean;
  readonly colour: boolean;
  readonly columns: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly rng: Rng;
  readonly fetch: typeof fetch;
  /** Aborts at SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

export interface CommandFiles {
  /** Throws INPUT_UNREADABLE with the path. */
  readText(path: string): Promise<string>;
  /** The names in a folder, in order; undefined where the path is no folder. */
  list(path: string): Promise<readonly string[] | undefined>;
  stdin(): Promise<string>;
}

export type OutputFormat = "table" | "json" | "yaml";
