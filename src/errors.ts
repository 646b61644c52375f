/**
 * The catalogue of errors. A code is never reused; `docs/errors.md` lists each (a test keeps the
 * two in step). Expected outcomes are values, not errors; broken invariants call `assert`.
 */
const catalogue = {
  // Exit 2: the command line, a configuration or an input file is wrong, and nothing was done.
  USAGE: { retryable: false, exitCode: 2 },
  CONFIG_INVALID: { retryable: false, exitCode: 2 },
  POLICY_INVALID: { retryable: false, exitCode: 2 },
  INPUT_UNREADABLE: { retryable: false, exitCode: 2 },
  INPUT_INVALID: { retryable: false, exitCode: 2 },
  OUTPUT_UNWRITABLE: { retryable: false, exitCode: 2 },
  KUBECONFIG_INVALID: { retryable: false, exitCode: 2 },
  // Exit 1: a failure at run time.
  API_UNREACHABLE: { retryable: true, exitCode: 1 },
  API_REFUSED: { retryable: false, exitCode: 1 },
  API_UNAUTHORIZED: { retryable: false, exitCode: 1 },
  API_OVERLOADED: { retryable: true, exitCode: 1 },
  API_ANSWER_INVALID: { retryable: true, exitCode: 1 },
  CRD_MISSING: { retryable: false, exitCode: 1 },
  RIGHT_MISSING: { retryable: false, exitCode: 1 },
  NOT_FOUND: { retryable: false, exitCode: 1 },
  CONFLICT: { retryable: true, exitCode: 1 },
  LEASE_LOST: { retryable: false, exitCode: 1 },
  CLOUD_UNREACHABLE: { retryable: true, exitCode: 1 },
  CLOUD_RATE_LIMITED: { retryable: true, exitCode: 1 },
  CLOUD_RIGHT_MISSING: { retryable: false, exitCode: 1 },
  CLOUD_REFUSED: { retryable: false, exitCode: 1 },
  CLOUD_CREDENTIALS: { retryable: false, exitCode: 1 },
  MACHINE_LEAVING: { retryable: true, exitCode: 1 },
  NOTICE_UNREADABLE: { retryable: true, exitCode: 1 },
  NOTICE_STALE: { retryable: false, exitCode: 1 },
  CLOCK_SKEW: { retryable: false, exitCode: 1 },
  INSTANCE_UNKNOWN: { retryable: false, exitCode: 1 },
  // An action around a departure; actions on AWS use the codes of the cloud as well.
  ACTION_UNREACHABLE: { retryable: true, exitCode: 1 },
  ACTION_TIMEOUT: { retryable: true, exitCode: 1 },
  ACTION_RATE_LIMITED: { retryable: true, exitCode: 1 },
  ACTION_REFUSED: { retryable: false, exitCode: 1 },
  ACTION_RIGHT_MISSING: { retryable: false, exitCode: 1 },
  ACTION_TARGET_UNKNOWN: { retryable: false, exitCode: 1 },
  ACTION_REDIRECTED: { retryable: false, exitCode: 1 },
  ACTION_ANSWER_INVALID: { retryable: false, exitCode: 1 },
  ACTION_HOST_FORBIDDEN: { retryable: false, exitCode: 1 },
  ACTION_UNSUPPORTED: { retryable: false, exitCode: 1 },
  ACTION_DEADLINE: { retryable: false, exitCode: 1 },
  ACTION_INTERRUPTED: { retryable: false, exitCode: 1 },
  SECRET_MISSING: { retryable: false, exitCode: 1 },
  SCRIPT_FAILED: { retryable: false, exitCode: 1 },
  PORT_TAKEN: { retryable: false, exitCode: 1 },
  // Exit 130: interrupted.
  INTERRUPTED: { retryable: false, exitCode: 130 },
  // A defect in Lastcall.
  BROKEN_INVARIANT: { retryable: false, exitCode: 1 },
} as const satisfies Record<string, { retryable: boolean; exitCode: number }>;

export type ErrorCode = keyof typeof catalogue;

export const errorCodes = Object.keys(catalogue) as readonly ErrorCode[];

/** An error with a code; the message is one sentence: "Cannot <action>: <found>, <wanted>". */
export class LastcallError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly exitCode: number;
  /** Every mistake that was found, one sentence each, if the message contains only the first. */
  readonly details: readonly string[];
  /** How long the refusing server asks to wait before the next request. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options?: {
      cause?: unknown;
      retryable?: boolean;
      details?: readonly string[];
      retryAfterMs?: number | undefined;
    },
  ) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = "LastcallError";
    this.code = code;
    this.retryable = options?.retryable ?? catalogue[code].retryable;
    this.exitCode = catalogue[code].exitCode;
    this.details = options?.details ?? [];
    this.retryAfterMs = options?.retryAfterMs;
  }
}

export function isLastcallError(error: unknown): error is LastcallError {
  return error instanceof LastcallError;
}

/** The message of whatever was thrown, as one sentence; never a stack. */
export function messageOf(error: unknown): string {
  const { message } = Object(error) as { readonly message?: unknown };
  return typeof message === "string" ? message : String(error);
}

/** Throws if something that must always be true is not. */
export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new LastcallError("BROKEN_INVARIANT", `Broken invariant: ${invariant}`);
}
