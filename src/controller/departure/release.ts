import type { MachineState } from "../../contracts/cloud/instance-releaser.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import { type Departure, isNoticed } from "../../core/departure/departure.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import { bindingMs } from "../../core/drain/drain-rule.ts";
import { awaitedUntil, givenUpAt, releaseTriedUntil } from "../../core/notice/reaction.ts";
import type { Policy, ReleaseMode } from "../../core/policy/policy.ts";
import { releaseModeOf } from "../../core/policy/release-mode.ts";
import { formatDuration, millis } from "../../core/time/time.ts";
import { isCloudFault, isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { LastLook } from "./last-look.ts";
import { isCloudsToTake, type Step, type StepContext } from "./step.ts";

/**
 * Waits until the machine is taken, where that is not ours to do; else leaves it to the next step.
 */
export async function awaitMachine(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  if (!isCloudsToTake(context)) return undefined;
  const departure = context.departure();
  // That reason stays in the status: the next leader goes by it.
  const hasFailed = departure.status.reason === "ReleaseFailed";
  if (!hasFailed) await context.statusWriter.setReason(departure, "AwaitingMachine");
  return untilTaken(context, signal);
}

/**
 * A node without pods is drained as soon as it is cordoned, which may be before the scheduler hears
 * of that: what it still binds is to leave by eviction, not with the machine.
 */
export async function awaitBindings(
  { memory, clock }: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  memory.cordonedAtMs ??= clock.monotonic();
  const leftMs = memory.cordonedAtMs + bindingMs - clock.monotonic();
  if (leftMs > 0) await clock.sleep(millis(leftMs), signal);
}

/** The step that releases the machine. Pods that came late leave by the steps of `draining`. */
export function releaseAfter(draining: readonly Step[]): Step {
  return async (context, signal) => {
    const mode = modeFor(context);
    if (mode === "None") return undefined;
    const order = { mode, lastLook: new LastLook(context, draining) };
    // A former leader may have sent its request just before.
    const { machine } = context.departure().status;
    let unansweredAtMs = machine === undefined ? undefined : context.clock.monotonic();
    const attempt = async () => {
      try {
        return await release(context, order, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (isLastcallError(error) && error.code === "CLOUD_UNREACHABLE") {
          unansweredAtMs = context.clock.monotonic();
        }
        const fault = await asItStands(error, { mode, context, signal, unansweredAtMs });
        await reportFault(fault, context);
        throw fault;
      }
    };
    try {
      return await context.retry(attempt, signal, (error) => isTriedEnough(error, context));
    } catch (error) {
      if (signal.aborted || !isLastcallError(error) || error.code === "LEASE_LOST") throw error;
      context.telemetry.faulted("release-failed", context.departure(), error);
      return unreleased(error, context, signal);
    }
  };
}

/**
 * What was written down before the first request counts: the Node may be gone, and its labels with
 * it.
 */
function modeFor({ policy, departure, node }: StepContext): ReleaseMode {
  if (policy.instance.release === "None") return "None";
  const labels = node()?.labels ?? {};
  return departure().status.machine?.mode ?? releaseModeOf({ labels }, policy.instance);
}

interface ReleaseDetails {
  readonly mode: Exclude<ReleaseMode, "None">;
  readonly lastLook: LastLook;
}

/**
 * Releases the machine, then takes its Node object away; in this order, never the other way round.
 * The machine's id is written into the status before the release is asked for, and the first one
 * that stands there counts: whoever tries again, after a crash or only after a fault, tells by it
 * the machine that was meant from one recreated under its name.
 */
async function release(
  context: StepContext,
  order: ReleaseDetails,
  signal: AbortSignal,
): Promise<PhaseResult> {
  const { executor, statusWriter } = context;
  const departure = withMachine(context.departure(), context.node());
  const { providerID } = departure.node;
  if (providerID !== undefined) {
    const { machine } = statusWriter.newest(departure).status;
    const asked = { providerID, mode: order.mode };
    const found = machine?.id ?? idOf(await executor.describe(asked, signal));
    if (found !== undefined) {
      const written = await statusWriter.write(departure, ({ status }) =>
        status.machine === undefined
          ? { ...status, machine: { id: found, mode: order.mode } }
          : undefined,
      );
      const machineId = written?.status.machine?.id ?? found;
      const kept = await letGo(departure, { ...order, machineId, context }, signal);
      if (kept !== undefined) return kept;
    }
  }
  await executor.removeNode(departure);
  return { event: "Released", reason: "Released" };
}

function idOf(state: MachineState): string | undefined {
  return state.kind === "Present" ? state.id : undefined;
}

/** Gives what keeps the machine instead. */
async function letGo(
  departure: Departure,
  order: ReleaseDetails & { readonly machineId: string; readonly context: StepContext },
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { mode, machineId, lastLook } = order;
  let kept: PhaseResult | undefined;
  const mayGo = async () => {
    const found = await lastLook.before(signal);
    if (typeof found === "string") return found;
    kept = found;
    return "Keep";
  };
  const how = { mode, machineId, lastLook: mayGo };
  await order.context.executor.release(departure, how, signal);
  if (kept === undefined) await lastLook.after();
  return kept;
}

/**
 * A person who writes a Departure by hand may name no machine. A Node object keeps its providerID
 * for life, so that the Node of the same uid tells it.
 */
function withMachine(departure: Departure, node: NodeFacts | undefined): Departure {
  const { providerID, uid } = departure.node;
  if (providerID !== undefined || node?.uid !== uid) return departure;
  return { ...departure, node: { ...departure.node, providerID: node.providerID } };
}

/**
 * A cloud is asked for so long. Past its machine nothing is left but the Node, of which the cluster
 * hears.
 */
function isTriedEnough(error: LastcallError, { departure, policy, clock }: StepContext): boolean {
  const untilAt = releaseTriedUntil(departure(), policy);
  return isCloudFault(error) && untilAt !== undefined && untilAt <= clock.now();
}

/** Within so long of a request a cloud shows that it has taken it. */
const takenWithinMs = 60_000;

/**
 * The fault of an attempt. One that would uncordon the node counts only where a look shows
 * that the machine stays: a request that was lost, or asked for by a former leader, may have got
 * through, and a machine on its way does not come back. A look may be too early to show it.
 */
async function asItStands(
  error: unknown,
  work: {
    readonly mode: Exclude<ReleaseMode, "None">;
    readonly context: StepContext;
    readonly signal: AbortSignal;
    /** When a request had no answer last, by the monotonic clock. */
    readonly unansweredAtMs: number | undefined;
  },
): Promise<unknown> {
  const { mode, context, signal, unansweredAtMs = Number.NEGATIVE_INFINITY } = work;
  const departure = withMachine(context.departure(), context.node());
  const { machine } = context.statusWriter.newest(departure).status;
  const { providerID } = departure.node;
  if (!isLastcallError(error) || error.code === "LEASE_LOST") return error;
  const isLast = !error.retryable || isTriedEnough(error, context);
  if (!isLast || isNoticed(departure)) return error;
  if (machine === undefined || providerID === undefined) return error;
  const isStaying = async (): Promise<boolean> => {
    const state = await context.executor
      .describe({ providerID, mode }, signal)
      .catch(() => undefined);
    signal.throwIfAborted();
    return state?.kind === "Present" && state.id === machine.id && state.running;
  };
  const earlyMs = unansweredAtMs + takenWithinMs - context.clock.monotonic();
  let stays = await isStaying();
  if (stays && earlyMs > 0) {
    await context.clock.sleep(millis(earlyMs), signal);
    stays = await isStaying();
  }
  return stays ? error : new LastcallError("MACHINE_LEAVING", error.message, { cause: error });
}

/** A release may be tried again for long: people are to see why, and not each time. */
async function reportFault(error: unknown, { departure, report }: StepContext): Promise<void> {
  const isNew = departure().status.reason !== "ReleaseRetried";
  if (isNew && isLastcallError(error) && error.retryable) {
    await report("ReleaseRetried", messageOf(error));
  }
}

/** A node that the cloud takes is not uncordoned for that: the cloud is waited for. */
async function unreleased(
  error: LastcallError,
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult> {
  const forLong = formatDuration(context.policy.instance.awaitMachineMs);
  const tried = `, tried again for ${forLong} (instance.awaitMachine)`;
  const detail = `${messageOf(error)}${error.retryable ? tried : ""}`;
  if (!isNoticed(context.departure())) {
    return { event: "GaveUp", reason: "ReleaseFailed", detail };
  }
  await context.report("ReleaseFailed", detail);
  return untilTaken(context, signal);
}

/**
 * The node's going ends this wait by interruption; so do `givenUpAt` and `awaitedUntil`, where it
 * has not gone.
 */
async function untilTaken(context: StepContext, signal: AbortSignal): Promise<PhaseResult> {
  const { policy, clock } = context;
  for (;;) {
    // Asked again after each wait: a recommendation may have come true meanwhile.
    const departure = context.departure();
    const byCloud = isNoticed(departure);
    const untilAt = byCloud ? givenUpAt(departure) : awaitedUntil(departure, policy);
    if (untilAt === undefined) return never(signal);
    if (untilAt <= clock.now()) {
      return byCloud
        ? { event: "GaveUp", reason: "NoticeWithdrawn" }
        : { event: "GaveUp", reason: "MachineNotTaken", detail: notTaken(policy) };
    }
    await clock.sleepUntil(untilAt, signal);
  }
}

function notTaken({ instance, name }: Policy): string {
  const waited = formatDuration(instance.awaitMachineMs);
  return `within ${waited}, and instance.release of policy ${name} is None: let another tool delete drained machines, or set another instance.release`;
}

/** Nothing is left to do: the node's going ends the phase by interruption. */
function never(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
