import { activeTime, answeredAt, beatsOf } from "../drain/drain-clock.ts";
import { type Millis, millis, minutes, seconds } from "../time/time.ts";
import type { Evaluation } from "./evaluation.ts";

/** How often the time is recorded: as little of it is lost if the leader dies. */
const beatMs: Millis = minutes(1);

/** A beat whose write failed is tried again after this. */
const leastBeatMs = 1000;

/**
 * For how long the release has been tried, which `instance.awaitMachine` limits: not while no
 * replica leads, or the API server is away. The time is in the Departure, as that of a drain is, so
 * that the next leader continues it; it is recorded once something has failed.
 */
export function triedMs(evaluation: Evaluation): Millis {
  const { scene, memory, now, status } = evaluation;
  const { awaitMachineMs } = scene.policy.instance;
  const beat = { ms: now.ms, beatMs };
  const recordedMs = seconds(scene.departure.status.releasingSeconds ?? 0);
  const before = memory.tried ?? { activeMs: recordedMs, seenMs: memory.phase.ms };
  const isHeard = scene.heardMs > before.seenMs;
  const tried = isHeard ? answeredAt(before, { ...beat, ms: scene.heardMs }) : before;
  evaluation.remember({ tried });
  const activeMs = activeTime(tried, beat);
  if (status.reason === "ReleaseRetried") {
    // The Node may have to be removed after that, for as long again.
    const mostMs = millis(2 * awaitMachineMs);
    const beats = beatsOf(activeMs, { beatMs: beat.beatMs, mostMs });
    evaluation.intend({ ...status, releasingSeconds: beats.seconds });
    if (beats.leftMs !== undefined)
      evaluation.lookAtMs(now.ms + Math.max(beats.leftMs, leastBeatMs));
  }
  return activeMs;
}
