import { type Departure, type DrainCounts, isLive } from "../../core/departure/departure.ts";
import { between, type Instant, type Millis } from "../../core/time/time.ts";
import { podCounts } from "../board-row.ts";
import type { PastDeparture, PodLoss } from "../stream.ts";

/** How a departure ended; undefined while it is live. */
export function pastDeparture(departure: Departure): PastDeparture | undefined {
  if (isLive(departure)) return undefined;
  const { uid: id, name, node, policy = null, cause, status } = departure;
  const endedAt = status.endedAt ?? status.timeline.at(-1)?.at ?? departure.createdAt;
  if (endedAt === undefined) return undefined;
  return {
    ...{ id, name, node: node.name, policy, cause },
    outcome: status.outcome ?? "Failed",
    reason: status.reason ?? null,
    explain: endSentence(departure),
    departAt: departure.departAt ?? null,
    deadlineAt: departure.deadlineAt ?? null,
    noticedAt: departure.noticedAt ?? null,
    startedAt: status.startedAt ?? null,
    endedAt,
    noticeToCordonMs: spanTo(departure.noticedAt, stepAt(departure, "Draining")),
    timeLeftMs: timeLeft(departure),
    pods: podCounts(status.drain),
    losses: lossesOf(departure),
  };
}

/**
 * How a departure ended, wherever that is told. Of a machine that the cloud took the ledger says
 * only that its Node went; what people ask is how its drain had gone by then.
 */
export function endSentence({ node, status }: Departure): string {
  const { outcome, drain, message = "" } = status;
  if ((outcome !== "Preempted" && outcome !== "Expired") || drain === undefined) return message;
  return `${node.name} is gone; ${drainedBefore(drain)}.`;
}

/** Of pods that are gone some were killed: those have not been drained. */
function drainedBefore({ left, total, killed = 0 }: DrainCounts): string {
  if (total === 0) return "it had no pods to drain";
  const were = (count: number): string => (count === 1 ? "was" : "were");
  const killedOf = `${killed} of ${total} pods ${were(killed)} killed`;
  if (left > 0 && killed > 0) return `${killedOf} and ${left} ${were(left)} not drained before`;
  if (left > 0) return `${left} of ${total} pods ${were(left)} not drained before`;
  if (killed === 0) {
    return total === 1 ? "its pod was drained before" : `all ${total} pods were drained before`;
  }
  if (total === 1) return "its pod was killed";
  const drained = total - killed;
  if (drained === 0) return `all ${total} pods were killed`;
  return `${killedOf}, ${drained === 1 ? "the other was" : `the other ${drained} were`} drained before`;
}

function stepAt({ status }: Departure, step: string): Instant | undefined {
  return status.timeline.find((entry) => entry.step === step)?.at;
}

function spanTo(from: Instant | undefined, to: Instant | undefined): Millis | null {
  return from === undefined || to === undefined || to < from ? null : between(from, to);
}

/** Of a notice alone: a plan's own deadline leaves hours. */
function timeLeft(departure: Departure): Millis | null {
  const { noticedAt, deadlineAt } = departure;
  const emptyAt = stepAt(departure, "Releasing");
  if (noticedAt === undefined || deadlineAt === undefined || emptyAt === undefined) return null;
  return between(emptyAt, deadlineAt);
}

function lossesOf({ status }: Departure): readonly PodLoss[] {
  const { notClean = [], forcedPods = [] } = status.drain ?? {};
  return [
    ...notClean.map(({ namespace, name, outcome, rule = null }) => ({
      ...{ pod: `${namespace}/${name}`, what: outcome, why: rule },
    })),
    ...forcedPods.map(({ namespace, name, reason }) => ({
      ...{ pod: `${namespace}/${name}`, what: "Forced" as const, why: reason },
    })),
  ];
}
