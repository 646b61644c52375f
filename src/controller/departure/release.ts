import type { MachineState, ReleasedMachine } from "../../contracts/cloud.ts";
import { mayBeDetached } from "../../core/action/action-plan.ts";
import { existedAt } from "../../core/cluster/machine-age.ts";
import { anothersMachine } from "../../core/cluster/machine-name.ts";
import type { NodeFacts } from "../../core/cluster/node.ts";
import { type Departure, isNoticed } from "../../core/departure/departure.ts";
import type { PhaseResult } from "../../core/departure/ledger.ts";
import { bindingMs } from "../../core/drain/drain-time.ts";
import {
  awaitedUntil,
  givenUpAt,
  releaseTriedUntil,
  stillRuns,
} from "../../core/notice/interruption.ts";
import type { Policy, ReleaseMode } from "../../core/policy/policy.ts";
import { releaseModeOf } from "../../core/policy/release-answer.ts";
import { formatDuration, later, millis, plus, seconds } from "../../core/time/time.ts";
import { assert, isLastcallError, LastcallError, messageOf } from "../../errors.ts";
import { releaserOf } from "../release-checks.ts";
import { Failing } from "./failing.ts";
import { LastLook } from "./machine-check.ts";
import { isCloudsToTake, type Step, type StepContext } from "./step.ts";

/**
 * Waits until somebody else takes the machine, if it is not ours to release.
 */
export async function awaitMachine(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  if (!isCloudsToTake(context)) return undefined;
  const departure = context.departure();
  // This reason must stay in the status: the next leader depends on it.
  const hasFailed = departure.status.reason === "ReleaseFailed";
  if (!hasFailed) await context.statusWriter.setReason(departure, "AwaitingMachine");
  return untilTaken(context, signal);
}

/**
 * Waits until the scheduler has seen the cordon. A node without pods is drained at once, and pods
 * bound after that have to leave by eviction, not with the machine.
 */
export async function awaitBindings(
  { memory, clock }: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  memory.cordonedAtMs ??= clock.monotonic();
  const leftMs = memory.cordonedAtMs + bindingMs - clock.monotonic();
  if (leftMs > 0) await clock.sleep(millis(leftMs), signal);
}

/** The step that releases the machine. Late pods are drained first, by `drainSteps`. */
export function releaseAfter(drainSteps: readonly Step[]): Step {
  return async (context, signal) => {
    const mode = modeFor(context);
    if (mode === "None") return undefined;
    const details = { mode, lastLook: new LastLook(context, drainSteps) };
    // An earlier leader may have sent its request just before.
    const { machine } = context.departure().status;
    let unansweredAtMs = machine === undefined ? undefined : context.clock.monotonic();
    const refusing = new Failing(context.clock);
    const attempt = async () => {
      try {
        return await release(context, details, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (isLastcallError(error) && error.code === "CLOUD_UNREACHABLE") {
          unansweredAtMs = context.clock.monotonic();
        }
        noteRefusal(error, refusing);
        const fault = await faultOfAttempt(error, {
          ...{ mode, context, signal, unansweredAtMs, refusing },
        });
        await reportFault(fault, context);
        throw fault;
      }
    };
    try {
      return await context.retry(attempt, signal, (error) =>
        isTriedEnough(error, { context, refusing }),
      );
    } catch (error) {
      if (signal.aborted || !isLastcallError(error) || error.code === "LEASE_LOST") throw error;
      context.telemetry.faulted("release-failed", context.departure(), error);
      return unreleased(error, context, signal);
    }
  };
}

/**
 * The mode recorded before the first request takes precedence: the Node and its labels may be gone.
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
 * Releases the machine, then deletes its Node object, always in this order. The machine's id is
 * written to the status before the first request and never replaced: a retry, even after a crash,
 * thereby distinguishes the machine from one that was recreated under its name.
 */
async function release(
  context: StepContext,
  details: ReleaseDetails,
  signal: AbortSignal,
): Promise<PhaseResult> {
  const { statusWriter } = context;
  const departure = withMachine(context.departure(), context.node());
  const { providerID } = departure.node;
  if (providerID !== undefined) {
    const { machine } = statusWriter.newest(departure).status;
    const asked = { providerID, mode: details.mode };
    const found = machine?.id ?? (await describedId(asked, context, signal));
    if (found !== undefined) {
      const written = await statusWriter.write(departure, ({ status }) =>
        status.machine === undefined
          ? { ...status, machine: { id: found, mode: details.mode } }
          : undefined,
      );
      const machineId = written?.status.machine?.id ?? found;
      const kept = await requestRelease(departure, { ...details, machineId, context }, signal);
      if (kept !== undefined) return kept;
    }
  }
  await removeNode(departure, context);
  return { event: "Released", reason: "Released" };
}

/** Deletes the Node object of a released machine; uncordons it if a new machine has it. */
async function removeNode({ node, name: owner }: Departure, { marks }: StepContext): Promise<void> {
  const { name, uid } = node;
  const result = await marks.remove(node);
  if (result.kind === "Mismatch") await marks.uncordon({ name, uid, departure: owner });
}

async function describe(
  machine: ReleasedMachine,
  { releaserFor }: StepContext,
  signal: AbortSignal,
): Promise<MachineState> {
  return releaserOf(machine, releaserFor).describe(machine.providerID, signal);
}

/**
 * Looks up the machine's id; undefined if the machine is gone. Rejects with CLOUD_REFUSED if the
 * cloud knows it as another one than the Node's.
 */
async function describedId(
  asked: ReleasedMachine,
  context: StepContext,
  signal: AbortSignal,
): Promise<string | undefined> {
  const state = await describe(asked, context, signal);
  const { name } = context.departure().node;
  const another = state.kind === "Present" && anothersMachine({ ...asked, name }, state.names);
  if (another) throw new LastcallError("CLOUD_REFUSED", `Cannot release the machine: ${another}`);
  const id = idOf(state, context);
  if (id !== undefined || !(await isStillReporting(context, signal))) return id;
  const found =
    state.kind === "Absent"
      ? "finds no such machine"
      : "shows a machine that is younger than the departure";
  throw new LastcallError(
    "CLOUD_REFUSED",
    `Cannot release ${asked.providerID}: its cloud ${found}, but its kubelet still reports; expected credentials for the account, project and region in which it runs`,
  );
}

/** The node of a machine that is off is Ready for at most this long. */
const silentAfterMs = seconds(70);
const silentAgainMs = seconds(10);

/**
 * Whether a node stays Ready for so long that its machine must be running: a cloud that is asked in
 * the wrong account or region finds no machine either.
 */
async function isStillReporting(
  { clock, readNode, departure }: StepContext,
  signal: AbortSignal,
): Promise<boolean> {
  const untilMs = clock.monotonic() + silentAfterMs;
  for (;;) {
    const node = await readNode(departure().node.name);
    if (!stillRuns(departure(), node)) return false;
    if (clock.monotonic() >= untilMs) return true;
    await clock.sleep(silentAgainMs, signal);
  }
}

/**
 * Undefined if the machine is gone. One that did not exist at the departure's start is another one,
 * which the group has created under the same name. If our clock was slow then, the Node's creation
 * shows since when its machine has existed.
 */
function idOf(state: MachineState, { departure, node, clock }: StepContext): string | undefined {
  if (state.kind === "Absent") return undefined;
  const { bornAt, asOf, id } = state;
  const { startedAt } = departure().status;
  if (bornAt === undefined || startedAt === undefined) return id;
  const existingAt = later(startedAt, node()?.createdAt ?? startedAt);
  return existedAt(existingAt, { bornAt, asOf }, clock.now()) ? id : undefined;
}

/** Releases the machine. Returns a result if the final check kept it instead. */
async function requestRelease(
  departure: Departure,
  details: ReleaseDetails & { readonly machineId: string; readonly context: StepContext },
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { mode, machineId, lastLook } = details;
  let kept: PhaseResult | undefined;
  const confirmOnce = async () => {
    const found = await lastLook.before(signal);
    if (typeof found === "string") return found;
    kept = found;
    return "Keep";
  };
  const { actions, releaserFor } = details.context;
  const { providerID } = departure.node;
  assert(providerID !== undefined, "a machine is released only where its providerID is known");
  const isOutOfGroup = () => mayBeDetached(actions.records);
  const machine = { providerID, machineId, mode };
  const request = { ...machine, requestId: departure.uid, lastLook: confirmOnce, isOutOfGroup };
  await releaserOf(machine, releaserFor).release(request, signal);
  if (kept === undefined) await lastLook.after();
  return kept;
}

/**
 * Adds the providerID if a hand-written Departure omits it. It comes from the Node of the same uid,
 * whose providerID never changes.
 */
function withMachine(departure: Departure, node: NodeFacts | undefined): Departure {
  const { providerID, uid } = departure.node;
  if (providerID !== undefined || node?.uid !== uid) return departure;
  return { ...departure, node: { ...departure.node, providerID: node.providerID } };
}

/** Follows since when the API server refuses: one that is away refuses nothing. */
function noteRefusal(error: unknown, refusing: Failing): void {
  if (!isLastcallError(error)) return;
  if (error.code === "API_UNREACHABLE") refusing.ends();
  else if (isApiFault(error)) refusing.begins();
}

interface Tried {
  readonly context: StepContext;
  readonly refusing: Failing;
}

/**
 * Whether the release has been tried for long enough, whoever refuses it: the cloud, or the API
 * server at the last look at the pods. If the machine is leaving by then, it is tried on. The time
 * in which the API server was away does not count: the node is drained, and would be for nothing.
 */
function isTriedEnough(error: LastcallError, { context, refusing }: Tried): boolean {
  const { departure, policy, clock } = context;
  const untilAt = releaseTriedUntil(departure(), policy);
  if (error.code === "MACHINE_LEAVING" || untilAt === undefined) return false;
  if (isApiFault(error)) return refusing.lasts(policy.instance.awaitMachineMs);
  return untilAt <= clock.now();
}

function isApiFault({ code }: LastcallError): boolean {
  return code.startsWith("API_");
}

/** A cloud shows within this time that it has accepted a request. */
const visibleWithinMs = 60_000;

/**
 * The error of an attempt. One that would uncordon the node is confirmed first by a lookup that the
 * machine stays: a request without a response, or of an earlier leader, may have succeeded, and a
 * terminating machine does not come back. An early lookup is repeated, since it may not show that
 * yet.
 */
async function faultOfAttempt(
  error: unknown,
  work: {
    readonly mode: Exclude<ReleaseMode, "None">;
    readonly context: StepContext;
    readonly signal: AbortSignal;
    /** When a request last got no response (monotonic). */
    readonly unansweredAtMs: number | undefined;
    readonly refusing: Failing;
  },
): Promise<unknown> {
  const { mode, context, signal, refusing, unansweredAtMs = Number.NEGATIVE_INFINITY } = work;
  const departure = withMachine(context.departure(), context.node());
  const { machine } = context.statusWriter.newest(departure).status;
  const { providerID } = departure.node;
  if (!isLastcallError(error) || error.code === "LEASE_LOST") return error;
  const isLast = !error.retryable || isTriedEnough(error, { context, refusing });
  if (!isLast || isNoticed(departure)) return error;
  if (machine === undefined || providerID === undefined) return error;
  const isStaying = async (): Promise<boolean> => {
    const state = await describe({ providerID, mode }, context, signal).catch(() => undefined);
    signal.throwIfAborted();
    return state?.kind === "Present" && state.id === machine.id && state.running;
  };
  const earlyMs = unansweredAtMs + visibleWithinMs - context.clock.monotonic();
  let stays = await isStaying();
  if (stays && earlyMs > 0) {
    await context.clock.sleep(millis(earlyMs), signal);
    stays = await isStaying();
  }
  return stays ? error : new LastcallError("MACHINE_LEAVING", error.message, { cause: error });
}

/** Reports once why a release is being retried, which may go on for a while. */
async function reportFault(error: unknown, { departure, report }: StepContext): Promise<void> {
  const isNew = departure().status.reason !== "ReleaseRetried";
  if (isNew && isLastcallError(error) && error.retryable) {
    await report("ReleaseRetried", messageOf(error));
  }
}

/** Handles a failed release. A node that the cloud takes stays cordoned, and we wait for that. */
async function unreleased(
  error: LastcallError,
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult> {
  const forLong = formatDuration(context.policy.instance.awaitMachineMs);
  const tried = `, retried for ${forLong} (instance.awaitMachine)`;
  const detail = `${messageOf(error)}${error.retryable ? tried : ""}`;
  if (!isNoticed(context.departure())) {
    return { event: "GaveUp", reason: "ReleaseFailed", detail };
  }
  await context.report("ReleaseFailed", detail);
  return untilTaken(context, signal);
}

/**
 * Waits until the machine is taken: the end of the node interrupts the phase. If that does not
 * happen, gives up at `givenUpAt` or `awaitedUntil`.
 */
async function untilTaken(context: StepContext, signal: AbortSignal): Promise<PhaseResult> {
  const { policy, clock } = context;
  for (;;) {
    // Evaluated after each wait: a recommendation may have become an interruption.
    const departure = context.departure();
    const byCloud = isNoticed(departure);
    const untilAt = byCloud ? givenUpAt(departure) : awaitedUntil(departure, policy);
    if (untilAt === undefined) return never(signal);
    const isOver = untilAt <= clock.now();
    if (isOver && !byCloud) {
      return { event: "GaveUp", reason: "MachineNotTaken", detail: notTaken(policy) };
    }
    if (isOver && stillRuns(departure, context.node())) {
      return { event: "GaveUp", reason: "NoticeOutlived" };
    }
    await clock.sleepUntil(later(untilAt, plus(clock.now(), runsAgainMs)), signal);
  }
}

/** How often a node is checked that is silent after its notice: it may have been restarted. */
const runsAgainMs = seconds(20);

function notTaken({ instance, name }: Policy): string {
  const waited = formatDuration(instance.awaitMachineMs);
  return `within ${waited}, and instance.release of policy ${name} is None: let another tool delete drained machines, or set another instance.release`;
}

/** Waits for the abort that the end of the node causes. */
function never(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
