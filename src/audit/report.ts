import type { GraceSource, ShutdownGroup } from "../core/drain-plan/grace-budget.ts";
import type { Landing } from "./landing.ts";
import type { BudgetSource } from "./platform.ts";
import type { Finding, Severity } from "./rule.ts";

/** What `lastcall audit -o json` prints; the names are pinned. */
export interface AuditReport {
  readonly apiVersion: "lastcall.dev/v1alpha1";
  readonly kind: "AuditReport";
  readonly platforms: readonly {
    readonly name: string;
    readonly groups: readonly ShutdownGroup[];
    readonly source: BudgetSource;
  }[];
  readonly workloads: readonly ReportedWorkload[];
  /** The worst first. */
  readonly findings: readonly Finding[];
  /** What an annotation `lastcall.dev/audit-ignore` sets aside, with its reason. */
  readonly ignored: readonly (Finding & { readonly reason: string })[];
  /** What the baseline already holds. */
  readonly known: readonly Finding[];
  /** Objects whose pods the input does not show. */
  readonly notJudged: readonly ReportedObject[];
  /** What a reader should know of how it was judged, one sentence each. */
  readonly notes: readonly string[];
  readonly summary: {
    readonly workloads: number;
    /** By platform: how many workloads get less than they ask for. */
    readonly cut: Readonly<Record<string, number>>;
    readonly findings: Readonly<Record<Severity, number>>;
  };
}

interface ObjectPlace {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly file: string | null;
  readonly line: number | null;
}

export interface ReportedWorkload extends ObjectPlace {
  readonly priority: number;
  readonly wantedGraceSeconds: number;
  readonly graceSource: GraceSource;
  /** Seconds by platform; a platform whose nodes the workload cannot be placed on is missing. */
  readonly granted: Readonly<Record<string, number>>;
  readonly cut: Readonly<Record<string, boolean>>;
  /** Whether its pods may be placed on Spot nodes: nowhere else, also there, or never. */
  readonly spot: Landing;
}

export interface ReportedObject extends ObjectPlace {
  readonly reason: "CustomResource" | "StaticPod";
}
