/**
 * A world is plain data: a fleet, its policy, its workloads, and the faults that will happen to
 * them. It determines a run to the last byte, and it is what is drawn from a seed, shrunk, and kept
 * in the corpus.
 */
export interface World {
  /** Of the model's own chance: uids, jitter. */
  readonly seed: number;
  /** How long faults last at most; then all of them end, and calm follows. */
  readonly hours: number;
  readonly nodes: readonly { readonly zone: string; readonly ageMinutes: number }[];
  /** `spec` of the DeparturePolicy `spot`, as a person writes it. */
  readonly policy: PolicySpec;
  readonly workloads: readonly Workload[];
  /** How many controllers compete for the Lease. */
  readonly replicas: number;
  /** How long a request takes on its way there, and back, at most; default: no time. */
  readonly latencyMs?: number;
  readonly machines: {
    readonly bootSeconds: number;
    readonly recreateSeconds: number;
    readonly stopSeconds: number;
  };
  readonly faults: readonly Fault[];
}

/** The fields of a policy that worlds use; durations are texts such as `5m`. */
export interface PolicySpec {
  readonly lifetime: { readonly max: string; readonly reserve: string };
  readonly spacing: { readonly mode: "Late" | "Even"; readonly min: string };
  readonly windows?: readonly PolicyWindow[];
  readonly budgets?: readonly { readonly nodes: number }[];
  readonly gates?: { readonly freezeUntil?: string };
  readonly replacement?: { readonly when: string; readonly timeout: string };
  readonly drain: { readonly timeout: string; readonly onTimeout: OnTimeout };
  readonly instance: { readonly release: string; readonly awaitMachine: string };
  readonly paused?: boolean;
}

type OnTimeout = "RollBack" | "Proceed" | "Wait";

/** In UTC and on every day, so that an oracle can read it without a calendar. */
export interface PolicyWindow {
  readonly name: string;
  readonly type: "Allow" | "Deny";
  readonly timeZone: "UTC";
  readonly start: string;
  readonly end: string;
}

export interface Workload {
  readonly name: string;
  /** `Bare`: pods without an owner. */
  readonly kind: "Deployment" | "StatefulSet" | "Bare";
  readonly replicas: number;
  readonly cpu: string;
  readonly graceSeconds: number;
  readonly exitSeconds: number | "never";
  /** Of its PodDisruptionBudget; 0: nobody can ever be evicted. */
  readonly maxUnavailable?: number;
  readonly doNotDisturb?: boolean;
  readonly finalizer?: boolean;
  /** Its pods fit in this zone only. */
  readonly zone?: string;
}

export interface Fault {
  /** A row of the table of faults. */
  readonly kind: string;
  readonly start: FaultStart;
  readonly lasts: FaultDuration;
  /** What the row has drawn for itself. */
  readonly with: Readonly<Record<string, unknown>>;
}

/** At a minute of the run, or when a departure comes to a phase for the nth time. */
export type FaultStart =
  | { readonly minute: number }
  | { readonly phase: string; readonly nth: number; readonly afterSeconds: number };

/** In minutes; `ever`: until calm comes. */
export type FaultDuration = number | "ever";
