import { type Departure, isLive } from "../../core/departure/departure.ts";
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
    explain: status.message ?? "",
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
