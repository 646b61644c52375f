import type { Clock } from "../contracts/clock.ts";
import type { VolumeAttachments } from "../contracts/cluster-capacity.ts";
import type { NodePods } from "../contracts/node-pods.ts";
import type { Rng } from "../core/chance/rng.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { PodIdentity } from "../core/cluster/pod.ts";
import { cloudDeadline, type DrainCounts } from "../core/departure/departure.ts";
import { drainBeganAt, hasReserved, type PhaseResult } from "../core/departure/ledger.ts";
import { placeholderName } from "../core/drain/placeholder-plan.ts";
import type { TerminationMemory } from "../core/drain/termination-time.ts";
import type { Policy } from "../core/policy/policy.ts";
import { type Instant, plus } from "../core/time/time.ts";
import type { CaseContext } from "./case-context.ts";
import type { DepartureTelemetry } from "./departure-telemetry.ts";
import { type DrainOver, DrainRun } from "./drain-run.ts";
import type { DrainTurns } from "./drain-turns.ts";
import type { Executor } from "./executor.ts";
import { waitForLoadBalancers } from "./load-balancer-wait.ts";
import type { StatusWriter } from "./status-writer.ts";
import { volumeWords, waitForVolumes } from "./volume-wait.ts";

export interface DrainWorkOrder {
  readonly node: NodeFacts;
  readonly policy: Policy;
}

export interface DrainWorkParts {
  readonly context: CaseContext;
  readonly telemetry: DepartureTelemetry;
  readonly ledger: StatusWriter;
  readonly tools: {
    readonly executor: Executor;
    readonly pods: NodePods;
    readonly attachments: VolumeAttachments;
    readonly turns: DrainTurns;
    readonly clock: Clock;
    readonly rng: Rng;
    readonly self?: string | undefined;
    readonly terminations: TerminationMemory;
    readonly readNode: (name: string) => Promise<NodeFacts | undefined>;
  };
  /** What an interrupted drain of this case had counted. */
  readonly counted: DrainCounts | undefined;
  readonly onCounts: (counts: DrainCounts) => void;
}

/** The phase Draining: the pods leave, then their volumes and the load balancers are waited for. */
export async function drainNode(
  order: DrainWorkOrder,
  parts: DrainWorkParts,
  signal: AbortSignal,
): Promise<PhaseResult> {
  const { context, telemetry, ledger, tools, counted } = parts;
  const departure = context.departure();
  const drain = counted ?? departure.status.drain;
  const begun = { ...departure, status: { ...departure.status, drain } };
  const run = new DrainRun(
    { ...order, departure: begun },
    {
      ...tools,
      onStep: (step, plan) => {
        ledger.holds(tools.turns.enter(departure, plan));
        telemetry.drainStepped(context.departure(), step, plan);
        parts.onCounts(step.counts);
        return ledger.note(context.departure(), step);
      },
      onAccepted: (pod) => giveCapacity(pod, parts),
    },
  );
  const stop = context.onObserved(() => run.update(context.departure()));
  try {
    const end = await run.run(signal);
    if (end.verdict === "Lost") return end.work;
    telemetry.drainEnded(context.departure(), end);
    tools.turns.leave(departure);
    if (end.verdict === "Done") await awaitVolumes(end, { order, parts }, signal);
    const work = drainHappening(end, order.policy);
    if (work.event !== "GaveUp") {
      await waitForLoadBalancers({ context, policy: order.policy, clock: tools.clock }, signal);
    }
    return work;
  } finally {
    stop();
  }
}

/**
 * The pod's replacement needs the room now. Not before: a pod that its budget holds keeps its room,
 * and in the moment between the replacement outranks the placeholder.
 */
function giveCapacity(pod: PodIdentity, { context, tools, telemetry }: DrainWorkParts): void {
  const departure = context.departure();
  if (!hasReserved(departure.status)) return;
  tools.executor
    .removePlaceholder(placeholderName(pod.uid))
    .catch((error: unknown) => telemetry.faulted("room-not-given", departure, error));
}

/** A fault in looking after volumes holds no departure up. */
async function awaitVolumes(
  end: DrainOver,
  about: { readonly order: DrainWorkOrder; readonly parts: DrainWorkParts },
  signal: AbortSignal,
): Promise<void> {
  if (end.volumes === "None") return;
  const { order, parts } = about;
  const { context, tools, telemetry } = parts;
  const emptyAt = tools.clock.now();
  const until = () => volumeLimit({ order, parts, emptyAt });
  try {
    const left = await waitForVolumes(
      { node: order.node.name, staying: end.staying, until },
      { context, tools },
      signal,
    );
    if (left.length > 0) telemetry.volumesLeft(context.departure(), volumeWords(left));
  } catch (error) {
    signal.throwIfAborted();
    telemetry.faulted("volumes-not-seen", context.departure(), error);
  }
}

/** The notice's deadline; else the drain's own timeout, which begins again where it is none. */
function volumeLimit(about: {
  readonly order: DrainWorkOrder;
  readonly parts: DrainWorkParts;
  readonly emptyAt: Instant;
}): Instant {
  const { drain } = about.order.policy;
  const departure = about.parts.context.departure();
  const beganAt = drainBeganAt(departure.status) ?? about.emptyAt;
  const fromAt = drain.onTimeout === "Wait" ? about.emptyAt : beganAt;
  return cloudDeadline(departure) ?? plus(fromAt, drain.timeoutMs);
}

function drainHappening(end: DrainOver, policy: Policy): PhaseResult {
  switch (end.verdict) {
    case "Done":
      return { event: "Drained", reason: "DrainDone", detail: end.account };
    case "DeadlineReached":
      return { event: "CutShort", reason: "DeadlineReached", detail: end.detail };
    case "TimedOut":
      return {
        event: policy.drain.onTimeout === "Proceed" ? "CutShort" : "GaveUp",
        reason: "DrainTimeout",
        detail: end.detail,
      };
    default:
      return end.verdict satisfies never;
  }
}
