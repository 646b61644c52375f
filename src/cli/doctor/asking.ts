import type { KubeApi, KubeObject } from "../../contracts/kube-api.ts";
import { type Millis, seconds } from "../../core/time/time.ts";
import { type Fact, known, unknown } from "../../doctor/facts.ts";
import { isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { apiError } from "../../kube/object/api-error.ts";
import type { CommandIo } from "../command-line/command-io.ts";

const answerWithin: Millis = seconds(20);

/** Asks one thing: whatever goes wrong with it is a fact as well, and hides no other. */
export async function fact<Value>(
  { clock, signal }: Pick<CommandIo, "clock" | "signal">,
  ask: (signal: AbortSignal) => Promise<Value>,
  withinMs = answerWithin,
): Promise<Fact<Value>> {
  const over = new AbortController();
  const late = new AbortController();
  void clock
    .sleep(withinMs, over.signal)
    .then(() =>
      late.abort(new LastcallError("CLOUD_UNREACHABLE", `no answer within ${withinMs / 1000} s`)),
    )
    .catch(() => undefined);
  try {
    return known(await ask(AbortSignal.any([signal, late.signal])));
  } catch (error) {
    signal.throwIfAborted();
    const found = late.signal.aborted ? late.signal.reason : error;
    return unknown(messageOf(found), isLastcallError(found) ? found : undefined);
  } finally {
    over.abort();
  }
}

/** One object; undefined where there is none. Throws the fault of any other answer. */
export async function objectAt(
  api: KubeApi,
  path: string,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const answer = await api.send({ method: "GET", path, signal });
  if (answer.status === 404) return undefined;
  if (answer.status !== 200) throw apiError({ method: "GET", path }, answer);
  return answer.body as KubeObject;
}
