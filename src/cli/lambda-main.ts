/**
 * The Lambda responder: runs a policy's actions around a departure, where there is no controller,
 * or for a controller that invokes it. `LASTCALL_ACTIONS` holds its actions, the list of
 * `spec.actions` as JSON.
 */
import { seededRng } from "../core/chance/chance.ts";
import { millis, plus, seconds } from "../core/time/time.ts";
import { createLog, leanIo } from "../runtime/process-io.ts";
import { realClock } from "../runtime/real-clock.ts";
import { createResponder } from "./lambda/create-responder.ts";
import { type Invocation, parseEventFields, readInvocation } from "./lambda/read-invocation.ts";
import type { Responder, ResponderAnswer } from "./lambda/responder.ts";

/** The parts of Lambda's context that are read. */
interface LambdaContext {
  readonly getRemainingTimeInMillis?: () => number;
}

/** The answer for the first machine; one event may be about several. */
interface HandlerAnswer extends Partial<ResponderAnswer> {
  readonly others?: readonly ResponderAnswer[];
}

const { env, err } = leanIo();
const clock = realClock;
const log = createLog({ level: "info", format: "json", write: err, clock });
/** How long before Lambda's timeout the answer is returned. */
const marginMs = seconds(2);
/** With less time than this, retries may not fit. Lambda's default timeout is 3 s. */
const littleMs = seconds(30);

let responder: Responder | undefined;

/** Lambda's entry point. Rejects if the invocation or the environment cannot be parsed. */
export async function handler(event: unknown, context: LambdaContext = {}): Promise<HandlerAnswer> {
  const rng = seededRng(clock.now());
  responder ??= createResponder({ env, clock, rng, log });
  const at = clock.now();
  const mapping = env.LASTCALL_EVENT_FIELDS?.trim();
  const fields = mapping ? parseEventFields(mapping) : undefined;
  const { machines, dropped } = readInvocation(event, { at, fields });
  for (const { instanceId, cause, why } of dropped) {
    log.info("notice-dropped", { instance: instanceId, cause, why });
  }
  if (machines.length === 0) return { actions: [], summary: explainStay(dropped) };
  const leftMs = context.getRemainingTimeInMillis?.();
  if (leftMs !== undefined && leftMs < littleMs) {
    const problem = `found ${leftMs / 1000} s left, expected a function with a timeout of 110 s`;
    log.warn("time-short", { problem });
  }
  const endsAt =
    leftMs === undefined ? undefined : plus(at, millis(Math.max(0, leftMs - marginMs)));
  const { signal } = new AbortController();
  // Lambda freezes the process as soon as this function fails, so every machine is waited for.
  const ends = await Promise.allSettled(
    machines.map((machine) => responder?.respond(machine, { endsAt, signal })),
  );
  const failed = ends.find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
  const answers = ends.flatMap((end) => (end.status === "fulfilled" ? (end.value ?? []) : []));
  const [first, ...others] = answers;
  return { ...first, ...(others.length === 0 ? {} : { others }) };
}

/** The summary for an invocation because of which no machine leaves. */
function explainStay(dropped: Invocation["dropped"]): string {
  const [first, ...others] = dropped;
  if (first === undefined) return "No machine leaves because of this event.";
  const { cause, instanceId, why } = first;
  const more = others.length === 0 ? "" : `, ${others.length} more in the log`;
  return `No machine leaves because of this event: ${cause} of ${instanceId} ${why}${more}.`;
}
