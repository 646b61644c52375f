import type { NodeFacts } from "../../src/core/cluster/node.ts";
import { decide } from "../../src/core/decide.ts";
import type { Decision, Snapshot } from "../../src/core/departure/decision.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { defaultPolicy, type Policy } from "../../src/core/policy/policy.ts";
import { hours, type Instant, instant, minutes, plus } from "../../src/core/time/time.ts";
import { everyMachine } from "./fleet-builder.ts";

export const now = instant(Date.UTC(2026, 10, 20, 12));
export const uid = "0123456789abcdef";

export const spot: Policy = {
  ...defaultPolicy,
  name: "spot",
  lifetime: { minMs: hours(0), maxMs: hours(24), reserveMs: minutes(30) },
};

export function node(more: Partial<NodeFacts> = {}): NodeFacts {
  return {
    name: "n1",
    uid,
    providerID: "gce://p/z/n1",
    bootID: "b1",
    labels: { "cloud.google.com/gke-spot": "true" },
    annotations: {},
    taints: [],
    unschedulable: false,
    ready: true,
    createdAt: plus(now, hours(-1)),
    ...more,
  };
}

export function departure(more: Partial<Departure> = {}): Departure {
  return {
    name: "n1-01234567",
    uid: "d1",
    resourceVersion: "1",
    node: { name: "n1", uid, providerID: "gce://p/z/n1", bootID: "b1" },
    cause: "Planned",
    policy: "spot",
    departAt: now,
    deadlineAt: plus(now, hours(22.5)),
    hold: false,
    status: { phase: "Scheduled", timeline: [] },
    ...more,
  };
}

export function world(more: Partial<Snapshot> = {}): Snapshot {
  return {
    nodes: [node()],
    policies: [spot],
    departures: [],
    badPolicies: [],
    gateAnswers: {},
    releaseAnswers: everyMachine,
    ...more,
  };
}

export function decided(snapshot: Snapshot, at: Instant = now): readonly Decision[] {
  return decide(snapshot, at).decisions;
}

/** Each decision in short: its kind, its event and its reason. */
export function inShort(snapshot: Snapshot, at?: Instant): readonly string[] {
  return decided(snapshot, at).map((one) => {
    const event = "event" in one ? ` ${one.event}` : "";
    return `${one.kind}${event}: ${one.reason}`;
  });
}
