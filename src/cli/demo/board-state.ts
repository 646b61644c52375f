import type { WindowState } from "../../core/limits/windows.ts";
import type { Instant } from "../../core/time/time.ts";
import type { FleetCounts } from "../../sim/demo/simulation-report.ts";

/** What the board shows, at one instant; everything that is on it follows from this alone. */
export interface BoardState {
  readonly now: Instant;
  readonly startedAt: Instant;
  readonly seed: number;
  /** How many times faster than real time the model runs just now. */
  readonly speed: number;
  /** Why the speed is what it is; absent: it is what was asked for. */
  readonly pace?: string | undefined;
  readonly paused?: boolean | undefined;
  readonly sort?: "Leaving" | "Name" | undefined;
  /** Whether somebody is there to press keys, so that they are shown. */
  readonly hasKeys?: boolean | undefined;
  /** The path of the file for a second terminal's kubectl. */
  readonly kubeconfig: string;
  /** Of the same board in a browser. */
  readonly address?: string | undefined;
  /** By name. */
  readonly policies: readonly BoardPolicy[];
  /** By zone, then by name. */
  readonly nodes: readonly BoardNode[];
  /** The notice that runs on Lastcall's fleet. */
  readonly notice?: BoardNotice | undefined;
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
  /** The machine at the same place in the fleet without Lastcall. */
  readonly twin?: BoardTwin | undefined;
}

export interface BoardTwin {
  readonly bornAt: Instant;
  readonly doing: "Working" | "Taken" | "Gone" | "Booting";
}

/** One machine's notice: its pods against its clock. */
export interface BoardNotice {
  readonly node: string;
  readonly noticedAt: Instant;
  /** When the machine is shut down, and pods have no say any more. */
  readonly deadlineAt: Instant;
  readonly pods: readonly BoardPod[];
  /** Pods of its twin that run on; absent where the cloud does not take the twin too. */
  readonly untold?: number | undefined;
}

export interface BoardPod {
  readonly name: string;
  /** When it was told to end, and when it had ended. */
  readonly terminatingAt?: Instant | undefined;
  readonly endedAt?: Instant | undefined;
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
  /** The cloud takes it: this is its notice, and what is left to do before the end of it. */
  | {
      readonly kind: "Taken";
      readonly deadlineAt: Instant;
      readonly podsLeft?: number | undefined;
    }
  | { readonly kind: "Gone" }
  | { readonly kind: "Booting" };

export interface BoardNews {
  readonly at: Instant;
  readonly node: string;
  /** An outcome of a departure; `Noticed` and `Drained` for a node that the cloud takes. */
  readonly what: string;
  readonly message: string;
}
