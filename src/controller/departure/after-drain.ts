import { Wakeup } from "../../contracts/clock.ts";
import type { FollowedVolumes } from "../../contracts/cluster.ts";
import { type AttachedVolume, awaitedVolumes } from "../../core/cluster/pod.ts";
import { type ActionRecord, cloudDeadline } from "../../core/departure/departure.ts";
import { drainBeganAt, type PhaseResult } from "../../core/departure/ledger.ts";
import type { ActionPoint } from "../../core/policy/action.ts";
import { earlier, formatInstant, type Instant, plus } from "../../core/time/time.ts";
import { assert } from "../../errors.ts";
import { type DrainEnd, isCloudsToTake, type StepContext, targetOf } from "./step.ts";

/** Starts the actions that are due. Neither cordon nor drain waits for them. */
export async function beginActions({ actions }: StepContext): Promise<undefined> {
  actions.begin();
}

/**
 * Before the drain of a departure that has time: waits for the required actions, and rolls the
 * departure back if one has failed.
 */
export async function awaitRequiredActions(
  context: StepContext,
  signal: AbortSignal,
): Promise<PhaseResult | undefined> {
  const { actions, report } = context;
  actions.begin("BeforeDrain");
  const { required } = actions;
  if (required.size === 0) return undefined;
  await report("ActionWait", [...required].join(", "));
  const these = ({ at, name }: ActionRecord) => isBeforeDrain(at) && required.has(name);
  const [first] = await failedOf(these, context, signal);
  if (first === undefined) return undefined;
  const detail = `${first.name}: ${first.detail ?? first.result}`;
  return { event: "GaveUp", reason: "ActionFailed", detail };
}

/** Waits until the machine has left its target groups, if an action deregisters it. */
async function awaitDetached(context: StepContext, signal: AbortSignal): Promise<void> {
  const these = ({ at, kind }: ActionRecord) => isBeforeDrain(at) && kind === "deregisterTargets";
  await failedOf(these, context, signal);
}

/**
 * Before the release: waits for the actions after the drain, which may need the machine. Failed
 * ones do not count.
 */
export async function awaitLastActions(
  context: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  await failedOf(({ at }) => at === "AfterDrain", context, signal);
}

function isBeforeDrain(at: ActionPoint): boolean {
  return at === "AtNotice" || at === "BeforeDrain";
}

/** Waits for these actions and returns those that have failed. Does not wait under a notice. */
async function failedOf(
  these: (record: ActionRecord) => boolean,
  context: StepContext,
  signal: AbortSignal,
): Promise<readonly ActionRecord[]> {
  const { actions } = context;
  const pressed = new AbortController();
  const look = () => {
    if (actions.isPressing) pressed.abort();
  };
  const stopObserving = context.onObserved(look);
  try {
    look();
    const failed = await actions.settled(these, AbortSignal.any([signal, pressed.signal]));
    return actions.isPressing ? [] : failed;
  } catch (error) {
    if (!pressed.signal.aborted || signal.aborted) throw error;
    return [];
  } finally {
    stopObserving();
  }
}

/** Before the node is uncordoned: undoes what actions have changed around it. */
export async function undoActions(
  { actions }: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  await actions.undo(signal);
}

/**
 * Waits until the volumes of the evicted pods are detached, so that their replacements do not have
 * to wait for a forced detach. Ends when time is up, or if attachments cannot be read.
 */
export async function awaitVolumes(context: StepContext, signal: AbortSignal): Promise<undefined> {
  const { telemetry, departure } = context;
  const end = drainEndOf(context);
  if (end.verdict !== "Done" || end.volumes === "None") return;
  try {
    const left = await untilDetached(end, context, signal);
    if (left.length > 0) telemetry.volumesLeft(departure(), namesOf(left));
  } catch (error) {
    signal.throwIfAborted();
    telemetry.faulted("volumes-not-seen", departure(), error);
  }
}

/** Returns the volumes still attached when time is up. Rejects if they cannot be listed. */
async function untilDetached(
  end: DrainEnd,
  context: StepContext,
  signal: AbortSignal,
): Promise<readonly AttachedVolume[]> {
  const { attachments, clock, report } = context;
  const emptyAt = clock.now();
  const wakeup = new Wakeup(clock);
  const wake = () => wakeup.wake();
  const done = new AbortController();
  const untilDone = AbortSignal.any([signal, done.signal]);
  const followed = attachments.follow(targetOf(context).name, untilDone);
  const stops = [followed.onChange(wake), context.onObserved(wake)];
  const claims = new Map<string, string | undefined>();
  try {
    await followed.synced();
    for (;;) {
      const attached = await withClaims(followed, { claims, context });
      signal.throwIfAborted();
      const left = awaitedVolumes(attached, end.staying);
      if (left.length === 0 || clock.now() >= volumesUntil(end, context, emptyAt)) return left;
      await report("VolumeWait", namesOf(left));
      // A notice that has arrived meanwhile changes the limit.
      await wakeup.sleepUntil(volumesUntil(end, context, emptyAt), signal);
    }
  } finally {
    for (const stop of stops) stop();
    done.abort();
  }
}

/**
 * The notice's deadline, otherwise the end of the drain's timeout. The timeout starts again if the
 * drain had no limit, or a job or long grace period has exceeded it.
 */
function volumesUntil({ rule }: DrainEnd, context: StepContext, emptyAt: Instant): Instant {
  const departure = context.departure();
  const beganAt = drainBeganAt(departure.status) ?? emptyAt;
  const endedAt = plus(beganAt, rule.timeoutMs);
  const isOutlasted = rule.onTimeout === "Wait" || endedAt <= emptyAt;
  return cloudDeadline(departure) ?? (isOutlasted ? plus(emptyAt, rule.timeoutMs) : endedAt);
}

function namesOf(volumes: readonly AttachedVolume[]): string {
  const names = volumes.map(({ claim, volume, name }) => claim ?? volume ?? name).toSorted();
  const shown = names.slice(0, 5).join(", ");
  return names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
}

/** Looks up each volume's claim once, because a volume is never bound to another claim. */
async function withClaims(
  followed: FollowedVolumes,
  about: { readonly claims: Map<string, string | undefined>; readonly context: StepContext },
): Promise<readonly AttachedVolume[]> {
  const { claims, context } = about;
  return Promise.all(
    followed.volumes().map(async (one) => {
      if (one.volume === undefined) return one;
      if (!claims.has(one.volume)) {
        claims.set(one.volume, await context.attachments.claimOf(one.volume));
      }
      return { ...one, claim: claims.get(one.volume) };
    }),
  );
}

/**
 * Waits for `loadBalancerDelay` before a machine is released, because load balancers still send
 * requests to the node until they have noticed its cordon. Counts from the start of the drain, as
 * recorded in the status, so that a restart does not extend it. A `deregisterTargets` action knows
 * when connections are drained, and is awaited instead.
 */
export async function awaitLoadBalancers(
  context: StepContext,
  signal: AbortSignal,
): Promise<undefined> {
  const { policy, clock, report, actions } = context;
  if (isCloudsToTake(context)) return;
  await awaitDetached(context, signal);
  const its = ({ kind, state }: ActionRecord) =>
    kind === "deregisterTargets" && state !== "Skipped";
  if (actions.records.find(its)?.state === "Done") return;
  const wakeup = new Wakeup(clock);
  const stop = context.onObserved(() => wakeup.wake());
  try {
    for (;;) {
      signal.throwIfAborted();
      const departure = context.departure();
      // Evaluated after each wait: a notice may leave the machine to the cloud.
      if (isCloudsToTake(context)) return;
      const beganAt = drainBeganAt(departure.status) ?? clock.now();
      const waitedAt = plus(beganAt, policy.instance.loadBalancerDelayMs);
      const untilAt = earlier(cloudDeadline(departure) ?? waitedAt, waitedAt);
      if (clock.now() >= untilAt) return;
      await report("LoadBalancerWait", formatInstant(untilAt));
      await wakeup.sleepUntil(untilAt, signal);
    }
  } finally {
    stop();
  }
}

/** Ends the phase Draining with the result of the drain. */
export async function drained(context: StepContext): Promise<PhaseResult> {
  const { verdict, account, detail } = drainEndOf(context);
  switch (verdict) {
    case "Done":
      return { event: "Drained", reason: "DrainDone", detail: account };
    case "DeadlineReached":
      return { event: "CutShort", reason: "DeadlineReached", detail };
    case "TimedOut":
      return { event: "CutShort", reason: "DrainTimeout", detail };
  }
}

function drainEndOf({ memory }: StepContext): DrainEnd {
  assert(memory.drained !== undefined, "the steps after a drain run after it has ended");
  return memory.drained;
}
