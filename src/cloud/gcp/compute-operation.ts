import type { Clock } from "../../contracts/clock.ts";
import { backoffMs } from "../../core/chance/backoff.ts";
import type { Rng } from "../../core/chance/rng.ts";
import { seconds } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import type { ComputeAnswer, ComputeCall, ComputeClient } from "./compute-client.ts";
import { faultOfOperation } from "./compute-fault.ts";
import type { ReleaseCall } from "./release-call.ts";

/** Wait may hold the request for two minutes; its connection gets half a minute more. */
const waitTimeoutMs = seconds(150);
/** Wait may also answer at once although nothing is done, so calls are kept a little apart. */
const waitRule = { firstMs: seconds(1), mostMs: seconds(8) };

export type OperationEnd =
  | { readonly kind: "Done" }
  | { readonly kind: "Failed"; readonly fault: LastcallError }
  /** The limit came first, or the cloud knows the operation no more: only the machine can tell. */
  | { readonly kind: "Unknown" };

export interface OperationWait {
  readonly started: ReleaseCall;
  /** The body that the act was answered with. */
  readonly operation: Readonly<Record<string, unknown>>;
  readonly client: ComputeClient;
  readonly clock: Clock;
  readonly rng: Rng;
  /** On the monotonic clock, in milliseconds. */
  readonly giveUpAt: number;
}

/**
 * Waits until an operation is DONE and says how it ended; that the request was taken with 200 says
 * nothing about that. Throws `LastcallError` when the cloud stops answering.
 */
export async function awaitOperation(
  wait: OperationWait,
  signal: AbortSignal,
): Promise<OperationEnd> {
  const { client, clock, rng } = wait;
  const call = waitCall(wait);
  let answer: ComputeAnswer = { kind: "Found", body: wait.operation };
  for (let round = 0; ; round++) {
    if (answer.kind === "NotFound") return { kind: "Unknown" };
    if (answer.body.status === "DONE") return endOf(answer.body, wait.started);
    if (clock.monotonic() >= wait.giveUpAt) return { kind: "Unknown" };
    if (round > 0) await clock.sleep(backoffMs(round - 1, rng, waitRule), signal);
    answer = await client.sendPatiently(call, signal);
  }
}

function waitCall(wait: OperationWait): ComputeCall {
  const { started, operation } = wait;
  const name = operation.name;
  // The name goes into a path, so it is held to the form of one.
  if (typeof name !== "string" || !/^[A-Za-z0-9][-A-Za-z0-9]*$/.test(name)) {
    throw new LastcallError(
      "CLOUD_UNREACHABLE",
      `Cannot ${started.call.action}: found an answer that is no operation, expected one`,
    );
  }
  return {
    method: "POST",
    path: `${started.operationsPath}/${name}/wait`,
    timeoutMs: waitTimeoutMs,
    action: `wait for the operation ${name}`,
    permission: started.operationsPermission,
  };
}

function endOf(body: Readonly<Record<string, unknown>>, started: ReleaseCall): OperationEnd {
  const fault = faultOfOperation(body, started.call);
  return fault === undefined ? { kind: "Done" } : { kind: "Failed", fault };
}
