import type { Clock } from "../../contracts/clock.ts";
import { type BackoffLimits, backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { textOf } from "../../core/json/json-field.ts";
import { type Millis, millis, seconds } from "../../core/time/time.ts";
import { isLastcallError } from "../../errors.ts";
import type { ReleaseBounds } from "../release/release-loop.ts";
import { type ArmAnswer, type ArmClient, retryAfterMs } from "./arm-client.ts";
import { type ArmPurpose, faultOfArm, readArmError } from "./arm-fault.ts";

export interface ArmWait {
  readonly client: ArmClient;
  readonly clock: Clock;
  readonly rng: Rng;
  /** What the operation does. */
  readonly purpose: ArmPurpose;
}

/** Where Azure does not say how long to wait. */
const pollRule: BackoffLimits = { firstMs: seconds(2), mostMs: seconds(15) };
const longestPauseMs = seconds(60);

/**
 * Waits for what an answer of 201 or 202 has begun, by its `Azure-AsyncOperation` or else its
 * `Location`, as often as `Retry-After` says. Throws the fault of an operation that failed.
 * Returns, too, where the limit came first or the operation may not be read: only the machine tells
 * then.
 */
export async function awaitArmOperation(
  started: ArmAnswer,
  wait: ArmWait,
  { giveUpAt, signal }: ReleaseBounds,
): Promise<void> {
  let answer = started;
  const url = operationUrlOf(started);
  if (url === undefined) return;
  const { client, clock, rng, purpose } = wait;
  for (let round = 0; clock.monotonic() < giveUpAt; round++) {
    await clock.sleep(pauseAfter(answer, backoffMs(round, rng, pollRule)), signal);
    const next = await readOperation(url.path, { client, purpose, signal });
    if (next === undefined) return;
    answer = next;
    if (isOver(answer, { by: url.by, purpose })) return;
  }
}

type Follows = "Status" | "Location";

function operationUrlOf(
  answer: ArmAnswer,
): { readonly by: Follows; readonly path: string } | undefined {
  if (answer.kind === "NotFound" || answer.status === 200 || answer.status === 204)
    return undefined;
  const status = answer.headers.get("azure-asyncoperation");
  if (status !== null) return { by: "Status", path: status };
  const location = answer.headers.get("location");
  return location === null ? undefined : { by: "Location", path: location };
}

function pauseAfter(answer: ArmAnswer, ownMs: Millis): Millis {
  const asked = answer.kind === "Found" ? retryAfterMs(answer.headers) : undefined;
  return millis(Math.min(asked ?? ownMs, longestPauseMs));
}

async function readOperation(
  path: string,
  by: { readonly client: ArmClient; readonly purpose: ArmPurpose; readonly signal: AbortSignal },
): Promise<ArmAnswer | undefined> {
  const permission = "to read the operation";
  const action = `follow the operation to ${by.purpose.action}`;
  try {
    const call = { method: "GET", path, action, permission } as const;
    const answer = await by.client.sendPatiently(call, by.signal);
    return answer.kind === "NotFound" ? undefined : answer;
  } catch (error) {
    // What may not be read is no fault of the operation.
    if (isLastcallError(error) && !error.retryable) return undefined;
    throw error;
  }
}

/** Throws the fault of one that failed. */
function isOver(
  answer: ArmAnswer,
  { by, purpose }: { readonly by: Follows; readonly purpose: ArmPurpose },
): boolean {
  if (answer.kind === "NotFound") return true;
  const status = textOf(answer.body.status) ?? "";
  if (/^(Failed|Canceled)$/i.test(status)) {
    const { code, message } = readArmError(answer.body);
    throw faultOfArm({ code: code || status, message }, purpose);
  }
  return by === "Location" ? answer.status !== 202 : /^Succeeded$/i.test(status);
}
