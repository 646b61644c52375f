import { type Departure, isLive, type Outcome } from "../core/departure/departure.ts";
import { between, formatInstant, type Instant, type Millis } from "../core/time/time.ts";
import { podCounts } from "./board-row.ts";
import type { OutcomeDay, PastDeparture, PodLoss } from "./stream.ts";

/** So many ended departures are shown one by one; the days count them all. */
const mostShown = 500;

/** The newest ended departures, the newest first. */
export function pastDepartures(departures: readonly Departure[]): readonly PastDeparture[] {
  return departures
    .flatMap((one) => pastDeparture(one) ?? [])
    .sort((a, b) => b.endedAt - a.endedAt || (a.id < b.id ? -1 : 1))
    .slice(0, mostShown);
}

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

/** Every ended departure there is, by day and policy; the newest day first. */
export function outcomeDays(departures: readonly Departure[]): readonly OutcomeDay[] {
  const days = new Map<string, Mutable>();
  for (const { status, policy = null } of departures) {
    const { endedAt, outcome, drain } = status;
    if (status.phase !== "Ended" || endedAt === undefined || outcome === undefined) continue;
    const day = formatInstant(endedAt).slice(0, 10);
    const key = `${day} ${policy ?? ""}`;
    const found = days.get(key) ?? newDay(day, policy);
    days.set(key, found);
    found.outcomes[outcome] = (found.outcomes[outcome] ?? 0) + 1;
    found.podsCut += drain?.cut ?? 0;
    found.podsForced += drain?.forced ?? 0;
    found.podsLost += (drain?.killed ?? 0) + (drain?.leftBehind ?? 0);
  }
  return [...days].sort(([a], [b]) => (a < b ? 1 : -1)).map(([, day]) => day);
}

type Mutable = { -readonly [Key in keyof Omit<OutcomeDay, "outcomes">]: OutcomeDay[Key] } & {
  outcomes: Partial<Record<Outcome, number>>;
};

function newDay(day: string, policy: string | null): Mutable {
  return { day, policy, outcomes: {}, podsCut: 0, podsLost: 0, podsForced: 0 };
}
