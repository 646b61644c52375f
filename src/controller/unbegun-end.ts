import type { Clock } from "../contracts/clock.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { Decision } from "../core/departure/decision.ts";
import { interruptionOf } from "../core/notice/interruption.ts";
import type { Policy } from "../core/policy/policy.ts";
import { releaseModeOf } from "../core/policy/release-answer.ts";
import { type Millis, seconds } from "../core/time/time.ts";
import type { Executor } from "./executor.ts";

type Note = Extract<Decision, { kind: "Note" }>;

export interface UnbegunOptions {
  readonly executor: Pick<Executor, "describe">;
  readonly clock: Clock;
  readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
  readonly policy: Policy;
}

/** A cloud that does not respond within this time says nothing. */
const answerWithinMs: Millis = seconds(5);

/**
 * The end of a departure that has not started, as far as there is evidence. Undefined if a read of
 * the API server shows that its node is still there: a list may have been answered from an old
 * cache, or in part. A node without a machine was taken by the cloud; if the cloud shows that the
 * same machine runs, somebody has deleted its Node.
 */
export async function confirmedEnd(
  note: Note,
  tools: UnbegunOptions,
  signal: AbortSignal,
): Promise<Note | undefined> {
  const { event, departure } = note;
  if (event !== "NodeGone" && event !== "MachineReplaced") return note;
  const fresh = await tools.readNode(departure.node.name);
  if (interruptionOf(departure, fresh)?.event !== event) return undefined;
  if (event !== "NodeGone" || !(await isRunning(departure, tools, signal))) return note;
  const detail = "its Node was deleted, and its machine still runs";
  return { ...note, event: "Cancelled", reason: "PlanChanged", detail };
}

/** False if it cannot be known, as when the cloud has made a machine of that name since. */
async function isRunning(
  { node, createdAt }: Note["departure"],
  { executor, clock, policy }: UnbegunOptions,
  signal: AbortSignal,
): Promise<boolean> {
  const mode = releaseModeOf({ labels: {} }, policy.instance);
  const { providerID } = node;
  if (mode === "None" || providerID === undefined || createdAt === undefined) return false;
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  const late = clock.sleep(answerWithinMs, stop).then(
    () => undefined,
    () => undefined,
  );
  const answer = executor.describe({ providerID, mode }, stop).catch(() => undefined);
  const state = await Promise.race([answer, late]);
  over.abort();
  if (state?.kind !== "Present" || !state.running) return false;
  return state.bornAt !== undefined && state.bornAt <= createdAt;
}
