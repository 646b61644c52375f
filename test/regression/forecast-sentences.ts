import { explainForecast } from "../../src/core/plan/explain-forecast.ts";
import type { Forecast, PolicyPlan } from "../../src/core/plan/fleet-plan.ts";
import type { Saying } from "../../src/core/reason/english.ts";
import { aPolicy, daily } from "../core/fleet-builder.ts";

/** A sentence that names a number, with none, one, two and a thousand. */
export type Row = readonly [
  what: string,
  say: (count: number) => Saying,
  none: string,
  one: string,
  two: string,
  thousand: string,
];

export const inTime: Forecast = {
  ...{ feasible: true, late: [], widenBySeconds: 0, helpless: 0, onHold: 0, shut: 0, overdue: 0 },
  ...{ expiring: 0, missed: 0, heldBack: 0, heldPastDeadline: 0, tight: [] },
};

const names = (count: number) => Array.from({ length: count }, (_, place) => `n${place + 1}`);

function forecast(count: number, more: Partial<Forecast> = {}, plan: Partial<PolicyPlan> = {}) {
  const departures = names(count).map((name) => ({ node: { name } }));
  return explainForecast({
    ...{ policy: aPolicy(), held: 0, departures, spacing: { reachedMs: null, wantedMs: null } },
    ...{ forecast: { ...inTime, ...more }, ...plan },
  } as unknown as PolicyPlan);
}

const nightly = aPolicy({ windows: [daily("22:00-06:00")] });
const late = (count: number) => ({ feasible: false, late: names(count), shut: count });

/** What forecasts say. */
export const forecastSentences: readonly Row[] = [
  [
    "on schedule",
    (count) => forecast(count),
    "No departures are planned",
    "The departure is on schedule",
    "Both departures are on schedule",
    "All 1000 departures are on schedule",
  ],
  [
    "all late",
    (count) => forecast(count, count === 0 ? {} : late(count)),
    "No departures are planned",
    "The departure is late; 1 node without an allowed time before the deadline",
    "Both departures are late; 2 nodes without an allowed time before the deadline",
    "All 1000 departures are late; 1000 nodes without an allowed time before the deadline",
  ],
  [
    "some late of 1001",
    (count) => forecast(1001, count === 0 ? {} : { feasible: false, late: names(count) }),
    "All 1001 departures are on schedule",
    "1 of 1001 departures is late",
    "2 of 1001 departures are late",
    "1000 of 1001 departures are late",
  ],
  [
    "on hold",
    (count) => forecast(1, { onHold: count }),
    "The departure is on schedule",
    "The departure is on schedule; 1 node on hold until after the deadline, which ends the hold",
    "The departure is on schedule; 2 nodes on hold until after the deadline, which ends the holds",
    "The departure is on schedule; 1000 nodes on hold until after the deadline, which ends the holds",
  ],
  [
    "missed",
    (count) => forecast(1, { missed: count }),
    "The departure is on schedule",
    "The departure is on schedule; 1 node that missed its time leaves past the deadline",
    "The departure is on schedule; 2 nodes that missed their time leave past the deadline",
    "The departure is on schedule; 1000 nodes that missed their time leave past the deadline",
  ],
  [
    "overdue",
    (count) => forecast(1, { overdue: count, expiring: Math.min(1, count) }),
    "The departure is on schedule",
    "The departure is on schedule; 1 node already past the deadline; lifetime.max ends first for it, unless it departs by request",
    "The departure is on schedule; 2 nodes already past the deadline, leaving one by one; lifetime.max ends first for 1 of them, unless they depart by request",
    "The departure is on schedule; 1000 nodes already past the deadline, leaving one by one; lifetime.max ends first for 1 of them, unless they depart by request",
  ],
  [
    "without an open window",
    (count) => forecast(1, { shut: count, helpless: Math.min(1, count) }, { policy: nightly }),
    "The departure is on schedule",
    "The departure is on schedule; 1 node without an open window before the deadline; longer windows would not help it",
    "The departure is on schedule; 2 nodes without an open window before the deadline; longer windows would not help 1 of them",
    "The departure is on schedule; 1000 nodes without an open window before the deadline; longer windows would not help 1 of them",
  ],
  [
    "held",
    (count) => forecast(count, {}, { held: count }),
    "No departures are planned",
    "The departure is held back",
    "Both departures are held back",
    "All 1000 departures are held back",
  ],
  [
    "some held of 1001",
    (count) => forecast(1001, {}, { held: count }),
    "All 1001 departures are on schedule",
    "1000 of 1001 departures are on schedule, 1 departure is held back",
    "999 of 1001 departures are on schedule, 2 departures are held back",
    "1 of 1001 departures is on schedule, 1000 departures are held back",
  ],
  [
    "a dry run",
    (count) => forecast(count, {}, { policy: aPolicy({ dryRun: true }) }),
    "Dry run: no departures are planned",
    "Dry run: 1 departure would be on schedule, and no node leaves",
    "Dry run: 2 departures would be on schedule, and no node leaves",
    "Dry run: 1000 departures would be on schedule, and no node leaves",
  ],
];
