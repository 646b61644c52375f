import type { WindowState } from "../../core/limits/window-state.ts";
import type { Instant } from "../../core/time/time.ts";
import type { FleetCounts } from "../../sim/simulation-report.ts";

/** What the board shows, at one instant; everything that is on it follows from this alone. */
export interface BoardState {
  readonly now: Instant;
  readonly startedAt: Instant;
  readonly seed: number;
  /** How many times faster than the clock time passes. */
  readonly speed: number;
  /** The path of the file for a second terminal's kubectl. */
  readonly kubeconfig: string;
  /** By name. */
  readonly policies: readonly BoardPolicy[];
  /** By zone, then by name. */
  readonly nodes: readonly BoardNode[];
  /** What happened last, the newest first. */
  readonly news: readonly BoardNews[];
  readonly withLastcall: FleetCounts;
  readonly without: FleetCounts;
}

export interface BoardPolicy {
  readonly name: string;
  readonly windows: WindowState;
  /** The sentence of its forecast. */
  readonly forecast: string;
  /** What the audit says of the workloads on its nodes; absent until the first audit. */
  readonly audit?: string | undefined;
}

/** One machine's place in the fleet, and what it is doing. */
export interface BoardNode {
  readonly name: string;
  readonly zone: string;
  readonly bornAt: Instant;
  readonly doing: Doing;
}

export type Doing =
  /** At work without a departure yet. */
  | { readonly kind: "Working" }
  | {
      readonly kind: "Scheduled";
      readonly departAt: Instant;
      readonly deadlineAt: Instant | undefined;
      /** From the closed list of reasons. */
      readonly why: string;
    }
  /** Its time has come, and something holds it back. */
  | { readonly kind: "Held"; readonly why: string }
  | {
      readonly kind: "Draining";
      readonly podsLeft: number;
      readonly podsTotal: number;
      readonly blocked: number;
    }
  | { readonly kind: "Releasing" }
  | { readonly kind: "RollingBack" }
  /** The cloud takes it: this is its notice. */
  | { readonly kind: "Taken"; readonly noticedAt: Instant }
  | { readonly kind: "Gone" }
  | { readonly kind: "Booting" };

export interface BoardNews {
  readonly at: Instant;
  readonly node: string;
  /** An outcome of a departure, or `Taken` for a node that no departure was planned for. */
  readonly what: string;
  readonly message: string;
}
