import { type Instant, minutes } from "../core/time/time.ts";
import type { DemoObject } from "./demo-workloads.ts";

/** How many nodes of the demo may be out at once before another one starts to leave. */
export const demoBudgetNodes = 2;
/** A node's deadline is so long after its launch time: 24 h less the reserve. */
export const demoLifetimeHours = 23.5;
/** Departures are at least this far apart. */
export const demoSpacingMs = minutes(15);

const hourMs = 3_600_000;

/** The hour of the day (UTC) in which nobody may start to leave; some hours after the start. */
export function quietHour(startAt: Instant): number {
  return (Math.floor(startAt / hourMs) + 5) % 24;
}

/** The demo's policy, as a user would write it. */
export function demoPolicy(startAt: Instant): DemoObject {
  const hour = quietHour(startAt);
  const clock = (at: number): string => `${String(at).padStart(2, "0")}:00`;
  const window = { name: "settlement", type: "Deny", timeZone: "UTC" };
  return {
    path: "/apis/lastcall.dev/v1alpha1/departurepolicies",
    body: {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "DeparturePolicy",
      metadata: { name: "spot" },
      spec: {
        lifetime: { max: "24h", reserve: "30m" },
        spacing: { mode: "Late", min: `${demoSpacingMs / minutes(1)}m` },
        windows: [{ ...window, start: clock(hour), end: clock(hour + 1) }],
        budgets: [{ nodes: demoBudgetNodes, scope: "Policy" }],
        drain: { timeout: "10m", onTimeout: "RollBack" },
      },
    },
  };
}

/** Whether the policy's window lets a planned departure start; by the hour alone. */
export function demoMayStart(startAt: Instant, at: Instant): boolean {
  return Math.floor(at / hourMs) % 24 !== quietHour(startAt);
}
