import { type Millis, millis, seconds } from "../time/time.ts";

/**
 * How long a pod took from the request to leave until it was gone. `Killed`: it had not ended when
 * its grace was over, and nobody knows how long it would have taken.
 */
export type TerminationTime = Millis | "Killed";

/** What one pod took, by the uid of its controller. */
export interface Termination {
  readonly workload: string;
  readonly took: TerminationTime;
}

/** What is known of a workload's pods. */
export interface TerminationRecord {
  readonly longest: TerminationTime;
  /** How many pods were seen to end. */
  readonly pods: number;
}

/** By the uid of the controller. */
export type TerminationRecords = ReadonlyMap<string, TerminationRecord>;

export function withTermination(
  record: TerminationRecord | undefined,
  took: TerminationTime,
): TerminationRecord {
  if (record === undefined) return { longest: took, pods: 1 };
  return { longest: longer(took, record.longest), pods: record.pods + 1 };
}

function longer(a: TerminationTime, b: TerminationTime): TerminationTime {
  return a === "Killed" || b === "Killed" ? "Killed" : millis(Math.max(a, b));
}

const leastSlackMs: Millis = seconds(3);

/**
 * What a pod of the workload is taken to need: the longest that was seen, and the fewer were seen
 * the more beyond it (after one pod four times as long, after three twice), but 3 s more at least.
 * Undefined where nobody knows.
 */
export function neededTime(record: TerminationRecord | undefined): Millis | undefined {
  if (record === undefined || record.longest === "Killed") return undefined;
  const { longest, pods } = record;
  return millis(longest + Math.max(leastSlackMs, Math.round((3 * longest) / pods)));
}

/**
 * What a drain goes by: the records of its workloads with what has just ended, and where a pod is
 * still `leaving` after longer than any before it, with as long as that.
 */
export function currentRecords(
  known: TerminationRecords,
  about: {
    readonly workloads: readonly (string | undefined)[];
    readonly ended: readonly Termination[];
    readonly leaving: readonly Termination[];
  },
): TerminationRecords {
  const records = new Map<string, TerminationRecord>();
  for (const workload of about.workloads) {
    const record = workload === undefined ? undefined : known.get(workload);
    if (workload !== undefined && record !== undefined) records.set(workload, record);
  }
  for (const { workload, took } of about.ended) {
    records.set(workload, withTermination(records.get(workload) ?? known.get(workload), took));
  }
  for (const { workload, took } of about.leaving) {
    const record = records.get(workload);
    if (record === undefined) continue;
    records.set(workload, { ...record, longest: longer(record.longest, took) });
  }
  return records;
}

/** So many workloads are remembered; of more those of which a pod ended last. */
const workloadsKept = 4096;

/**
 * What is known over many drains, so that one learns of another. It is a help and no state: whoever
 * begins without it takes each pod to need its grace.
 */
export class TerminationMemory {
  readonly #records = new Map<string, TerminationRecord>();

  get records(): TerminationRecords {
    return this.#records;
  }

  remember({ workload, took }: Termination): void {
    const record = withTermination(this.#records.get(workload), took);
    // Put last again: a map keeps the order of insertion.
    this.#records.delete(workload);
    this.#records.set(workload, record);
    if (this.#records.size <= workloadsKept) return;
    const [oldest] = this.#records.keys();
    if (oldest !== undefined) this.#records.delete(oldest);
  }
}
