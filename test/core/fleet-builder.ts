import type { NodeFacts } from "../../src/core/cluster/node.ts";
import type { Departure, DepartureStatus } from "../../src/core/departure/departure.ts";
import type { Policy, Window } from "../../src/core/policy/policy.ts";
import type { ReleaseAnswer, ReleaseAnswers } from "../../src/core/policy/release-answer.ts";
import { hours, type Instant, millis, minutes, parseInstant } from "../../src/core/time/time.ts";

/** Builders with plain defaults, so that a test states only what it is about. */

export function at(text: string): Instant {
  const found = parseInstant(text);
  if (found === undefined) throw new RangeError(`${text} is no instant`);
  return found;
}

export function aPolicy(over: Partial<Policy> = {}): Policy {
  return {
    name: "spot",
    weight: 0,
    lifetime: { minMs: millis(0), maxMs: hours(24), reserveMs: minutes(30) },
    spacing: { mode: "Late", minMs: minutes(15) },
    windows: [],
    budgets: [],
    gates: { blockingPods: [] },
    replacement: { when: "BeforeDrain", timeoutMs: minutes(10), onTimeout: "Proceed" },
    drain: {
      timeoutMs: minutes(5),
      onTimeout: "RollBack",
      onSingleReplica: "Wait",
      budgetShare: 0.5,
      podRules: [],
    },
    onNotice: { spotInterruption: "Drain", rebalance: "Ignore", maintenance: "Drain" },
    instance: {
      release: "Recreate",
      awaitMachineMs: minutes(30),
      loadBalancerDelayMs: millis(0),
      lifecycleHook: "Continue",
    },
    actions: [],
    paused: false,
    dryRun: false,
    ...over,
  };
}

export function aNode(name: string, over: Partial<NodeFacts> = {}): NodeFacts {
  return {
    name,
    uid: `uid-${name}`,
    providerID: `gce://p/z/${name}`,
    labels: { "cloud.google.com/gke-spot": "true" },
    annotations: {},
    taints: [],
    unschedulable: false,
    ready: true,
    createdAt: at("2026-11-20T00:00:00Z"),
    ...over,
  };
}

export function inZone(zone: string): Pick<NodeFacts, "labels"> {
  return { labels: { "cloud.google.com/gke-spot": "true", "topology.kubernetes.io/zone": zone } };
}

/** Every machine can be released. */
export const everyMachine: ReleaseAnswers = new (class extends Map<string, ReleaseAnswer> {
  override get(): ReleaseAnswer {
    return { kind: "Possible" };
  }
})();

interface DepartureOver extends Partial<Omit<Departure, "status">> {
  readonly status?: Partial<DepartureStatus>;
}

export function aDeparture(node: NodeFacts, over: DepartureOver = {}): Departure {
  return {
    name: `${node.name}-1`,
    uid: `departure-${node.name}`,
    resourceVersion: "1",
    node: { name: node.name, uid: node.uid, providerID: node.providerID },
    cause: "Planned",
    policy: "spot",
    hold: false,
    ...over,
    status: { phase: "Scheduled", timeline: [], ...over.status },
  };
}

/** An Allow window of every day in UTC, `22:00-06:00`. */
export function daily(text: string, over: Partial<Window> = {}): Window {
  const minute = (part: string): number => Number(part.slice(0, 2)) * 60 + Number(part.slice(3));
  const [start = "", end = ""] = text.split("-");
  return {
    ...{ kind: "Weekly", name: text, type: "Allow", timeZone: "UTC" },
    days: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    startMinute: minute(start),
    endMinute: minute(end),
    ...over,
  } as Window;
}

/**
 * Opens at every full minute for `durationMs`: windows on the scale of an oracle's grid.
 */
export function everyMinute(durationMs: number, type: "Allow" | "Deny"): Window {
  return {
    ...{ kind: "Cron", name: `${type}-${durationMs}`, type, timeZone: "UTC" },
    ...{ cron: "* * * * *", durationMs: millis(durationMs) },
  } as Window;
}
