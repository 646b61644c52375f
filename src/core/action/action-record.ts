import type { ActionRecord, Departure } from "../departure/departure.ts";
import { begunLastAt } from "../departure/ledger.ts";
import type { Policy } from "../policy/policy.ts";
import type { Instant } from "../time/time.ts";
import { actionRecords, isFormer, isMessage, isUnfinished, recordsAtEnd } from "./action-plan.ts";

/**
 * The records of a departure's actions as they should be written. Those of actions that this
 * process has started (`own`) are newer than what is written; for all others that is newer.
 */
export function newestRecords(
  written: readonly ActionRecord[],
  about: {
    readonly own: Iterable<ActionRecord>;
    readonly departure: Departure;
    readonly policy: Policy;
    /** Whether an action is running in this process. */
    readonly underWay: (name: string) => boolean;
  },
): readonly ActionRecord[] {
  const { own, departure, policy, underWay } = about;
  const { cause, status } = departure;
  const { phase } = status;
  const newest = new Map([...written, ...own].map((one) => [one.name, one]));
  const records = [...newest.values()];
  const { actions, dryRun } = policy;
  const begunAt = begunLastAt(status);
  const planned = actionRecords(actions, { cause, phase, records, begunAt, dryRun });
  return phase === "Ended" ? recordsAtEnd(planned, underWay) : planned;
}

/**
 * The record of an action that starts now, or that continues a run of an earlier process. One that
 * was undone starts from nothing, also while the roll-back is the last phase in the cluster: its
 * undo record is that of the former run, and a new one is written before anything is changed.
 */
export function begunRecord(
  record: ActionRecord,
  { status, now }: Pick<Departure, "status"> & { readonly now: Instant },
): ActionRecord {
  const { name, kind, at, state } = record;
  const before = state === "Undone" ? { name, kind, at, state, attempts: 0 } : record;
  const startedAt = isFormer(before, begunLastAt(status)) ? now : (before.startedAt ?? now);
  return { ...before, state: "Running", startedAt, attempts: before.attempts + 1 };
}

/** Whether another process has not ended the action meanwhile. */
export function isClaimable(written: ActionRecord | undefined): boolean {
  return written === undefined || isUnfinished(written) || written.state === "Undone";
}

/**
 * The record of a run that was broken off. What may have been changed is undone by its undo record;
 * without one, nothing has been changed.
 */
export function brokenOffRecord(record: ActionRecord): ActionRecord {
  if (record.state !== "Running") return record;
  return { ...record, state: record.undo === undefined ? "Undone" : "Running" };
}

/**
 * Whether a run may be broken off: not while its receiver is asked for what cannot be undone
 * (`isAsked`). A message is sent whatever becomes of the departure.
 */
export function mayBreakOff(record: ActionRecord | undefined, isAsked: boolean): boolean {
  if (record === undefined) return true;
  return !isMessage(record.kind) && (record.undo !== undefined || !isAsked);
}
