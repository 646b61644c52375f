import type { DoctorFacts, Fact } from "./facts.ts";

export type CheckStatus = "Pass" | "Warn" | "Fail" | "Skip";

export interface CheckResult {
  readonly status: CheckStatus;
  /** One sentence without its period. */
  readonly message: string;
  /** What to do about it; absent: what the check says in general. */
  readonly fix?: string | undefined;
}

/** One thing that is looked at. Pure: it judges facts, and reads nothing. */
export interface Check {
  readonly id: string;
  /** What is looked at, for the documentation: a phrase without a period. */
  readonly looksAt: string;
  /** What to do where it does not pass: a command, or the page to follow. */
  readonly fix: string;
  readonly run: (facts: DoctorFacts) => CheckResult;
}

export function pass(message: string): CheckResult {
  return { status: "Pass", message };
}

export function warn(message: string, fix?: string): CheckResult {
  return { status: "Warn", message, fix };
}

export function fail(message: string, fix?: string): CheckResult {
  return { status: "Fail", message, fix };
}

export function skip(message: string): CheckResult {
  return { status: "Skip", message };
}

/** Judges what is known; what could not be asked is said instead. */
export function judging<Value>(
  fact: Fact<Value>,
  judge: (value: Value) => CheckResult,
): CheckResult {
  return fact.kind === "Known" ? judge(fact.value) : skip(fact.why);
}

/** `a, b and 3 more`. */
export function namesOf(names: readonly string[], most = 3): string {
  const shown = names.slice(0, most);
  const rest = names.length - shown.length;
  return rest > 0 ? `${shown.join(", ")} and ${rest} more` : shown.join(", ");
}

export function counted(count: number, singular: string, plural = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : plural}`;
}
