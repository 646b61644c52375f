import { mkdirSync, writeFileSync } from "node:fs";
import { seededRng } from "../src/core/chance/chance.ts";
import type { NodeFacts } from "../src/core/cluster/node.ts";
import type { Departure } from "../src/core/departure/departure.ts";
import type { PlanInput } from "../src/core/plan/fleet-plan.ts";
import { planFleet } from "../src/core/plan/plan.ts";
import type { Policy, Window } from "../src/core/policy/policy.ts";
import {
  hours,
  type Instant,
  instant,
  millis,
  minutes,
  parseInstant,
} from "../src/core/time/time.ts";

/**
 * How long the planner takes, and whether it grows like n log n. All figures are from one run. The
 * CPU time of each case is the minimum of several rounds after a warm-up; `growth` is the ratio to
 * the previous case divided by the ratio of n log n, and should be about 1 or less.
 */
const sizes = [1_000, 10_000, 65_000];
const roundsOf: Readonly<Record<number, number>> = { 1000: 30, 10000: 8, 65000: 4 };

const now = parseInstant("2026-11-20T00:00:00Z") as Instant;

const nights = {
  ...{ kind: "Weekly", name: "nights", type: "Allow", timeZone: "Asia/Tokyo" },
  days: ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
  ...{ startMinute: 22 * 60, endMinute: 6 * 60 },
} as Window;
const sale = {
  ...{ kind: "Cron", name: "sale", type: "Deny", timeZone: "Asia/Tokyo" },
  ...{ cron: "0 3 * * *", durationMs: hours(1) },
} as Window;

function policyOf(mode: "Late" | "Even", windows: readonly Window[]): Policy {
  return {
    ...{ name: "spot", weight: 0, windows, budgets: [], gates: { blockingPods: [] } },
    actions: [],
    lifetime: { minMs: millis(0), maxMs: hours(24), reserveMs: minutes(30) },
    spacing: { mode, minMs: minutes(15) },
    replacement: { when: "BeforeDrain", timeoutMs: minutes(10), onTimeout: "Proceed" },
    drain: {
      timeoutMs: minutes(5),
      ...{ onTimeout: "RollBack", onSingleReplica: "Wait", budgetShare: 0.5, podRules: [] },
    },
    onNotice: { spotInterruption: "Drain", rebalance: "Ignore", maintenance: "Drain" },
    instance: {
      ...{ release: "Recreate", awaitMachineMs: minutes(30), loadBalancerDelayMs: millis(0) },
      lifecycleHook: "Continue",
    },
    ...{ paused: false, dryRun: false },
  };
}

interface FleetOptions {
  readonly size: number;
  /** The share of nodes with a hold, which breaks the order by launch time. */
  readonly held: number;
}

function nodesOf({ size, held }: FleetOptions): readonly NodeFacts[] {
  const rng = seededRng(size);
  return Array.from({ length: size }, (_, i) => {
    // Launched in the last ten hours, so that each has a night before its deadline.
    const bornAt = now - Math.floor(rng() * hours(10));
    const hold = new Date(now + Math.floor(rng() * hours(3))).toISOString();
    return {
      ...{ name: `node-${i}`, uid: `uid-${i}`, providerID: `gce://p/zone/node-${i}` },
      labels: {
        "cloud.google.com/gke-spot": "true",
        "topology.kubernetes.io/zone": `zone-${i % 3}`,
      },
      annotations: rng() < held ? { "lastcall.dev/hold": hold } : {},
      ...{ taints: [], unschedulable: false, ready: true, createdAt: instant(bornAt) },
    } as NodeFacts;
  });
}

interface Case {
  readonly name: string;
  readonly size: number;
  /** Created on demand: a controller has one fleet in memory, not those of all cases. */
  readonly input: () => PlanInput;
}

interface Shape {
  readonly mode: "Late" | "Even";
  readonly windows: readonly Window[];
  readonly held: number;
}

const shapes = [
  { name: "late", mode: "Late", windows: [], held: 0 },
  { name: "late, windows", mode: "Late", windows: [nights, sale], held: 0 },
  { name: "even", mode: "Even", windows: [], held: 0 },
  { name: "even, windows", mode: "Even", windows: [nights, sale], held: 0 },
  { name: "late, holds", mode: "Late", windows: [], held: 0.02 },
  { name: "late, windows and holds", mode: "Late", windows: [nights, sale], held: 0.02 },
  { name: "even, windows and holds", mode: "Even", windows: [nights, sale], held: 0.02 },
] as const;

function cases(): readonly Case[] {
  const fresh = shapes.flatMap((shape) =>
    sizes.map((size): Case => ({ name: shape.name, size, input: () => freshFleet(shape, size) })),
  );
  const replans = sizes.map(
    (size): Case => ({ name: "replan after one change", size, input: () => keptFleet(size) }),
  );
  return [...fresh, ...replans];
}

function freshFleet({ mode, windows, held }: Shape, size: number): PlanInput {
  const policies = [policyOf(mode, windows)];
  return { policies, badPolicies: [], nodes: nodesOf({ size, held }), departures: [], at: now };
}

/** A fleet that is already planned, of which one node has just been preempted. */
function keptFleet(size: number): PlanInput {
  const input = freshFleet({ mode: "Late", windows: [nights, sale], held: 0 }, size);
  const departures = (planFleet(input).policies[0]?.departures ?? []).map(
    ({ node, departAt }): Departure => ({
      ...{ name: node.name, uid: node.uid, resourceVersion: "1", node, cause: "Planned" },
      ...{ departAt, policy: "spot", hold: false, status: { phase: "Scheduled", timeline: [] } },
    }),
  );
  return { ...input, departures, nodes: input.nodes.slice(1) };
}

function cpuMs(run: () => void): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

function measure({ name, size, input }: Case): {
  name: string;
  size: number;
  cpuMs: number;
  firstMs: number;
} {
  const fleet = input();
  const run = (): void => void planFleet(fleet);
  const rounds = Array.from({ length: roundsOf[size] ?? 5 }, () => cpuMs(run));
  return { name, size, cpuMs: Math.min(...rounds), firstMs: rounds[0] ?? 0 };
}

function nLogN(size: number): number {
  return size * Math.log2(size);
}

function main(): void {
  const measured = cases().map(measure);
  const rows = measured.map((row, at) => {
    const before = measured[at - 1];
    if (before === undefined || before.name !== row.name) return { ...row, growth: null };
    const growth = row.cpuMs / before.cpuMs / (nLogN(row.size) / nLogN(before.size));
    return { ...row, growth: Math.round(growth * 100) / 100 };
  });
  for (const { name, size, growth, cpuMs: cpu, firstMs } of rows) {
    const grows = growth === null ? "" : `, ${growth} x n log n`;
    console.log(
      `${name}, ${size} nodes: ${cpu.toFixed(1)} ms (first ${firstMs.toFixed(1)})${grows}`,
    );
  }
  mkdirSync(new URL("results/", import.meta.url), { recursive: true });
  writeFileSync(
    new URL("results/plan.json", import.meta.url),
    `${JSON.stringify({ bench: "plan", rows }, null, 2)}\n`,
  );
}

main();
