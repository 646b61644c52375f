import { formatInstant } from "../../core/time/time.ts";
import type { Violation } from "../invariants/invariant.ts";

/** What became of a fleet under one policy. */
export interface FleetCounts {
  /** Nodes that left as planned: every pod by eviction, in its own time, then the machine. */
  readonly plannedDepartures: number;
  /** Machines that the cloud took, at its own time or at their 24 hours. */
  readonly preempted: number;
  /** Of these, the machines that had reached their 24 hours. */
  readonly preemptedAtLimit: number;
  /** Departures in which a pod had to be deleted past its budget, or was left. */
  readonly forced: number;
  /** Departures that the end of a notice overtook with pods still on the node. */
  readonly expired: number;
  /**
   * Pods that got less time to end than they ask for. DaemonSet pods are not counted, nor below.
   */
  readonly podsCut: number;
  /** Pods that were killed before their program had ended. */
  readonly podsLost: number;
  /** Machines made for ones that went. */
  readonly replacements: number;
  /** The most machines that the cloud took within one minute. */
  readonly largestLossIn60s: number;
  /** The same within one hour: machines launched together reach their 24 hours over most of one. */
  readonly largestLossIn1h: number;
}

interface PolicyRun {
  readonly name: string;
  readonly counts: FleetCounts;
}

export interface SimulationFacts {
  readonly seed: number;
  readonly runs: number;
  /** Nodes wanted times hours run, over all runs. */
  readonly nodeHours: number;
  readonly policies: readonly PolicyRun[];
  readonly violations: readonly Violation[];
  readonly wallSeconds: number;
}

/**
 * The pinned form of contract: kind SimulationReport. All but `wallSeconds` follows from the seed.
 */
export function simulationReport(facts: SimulationFacts): object {
  const { seed, runs, nodeHours, policies, violations, wallSeconds } = facts;
  return {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "SimulationReport",
    seed,
    runs,
    nodeHours,
    policies: policies.map(({ name, counts }) => ({ name, ...ratedCounts(counts, nodeHours) })),
    violations: violations.map((one) => ({ ...one, at: formatInstant(one.at) })),
    wallSeconds,
  };
}

/** The counts in the pinned order, with the two rates that make fleets comparable. */
function ratedCounts(counts: FleetCounts, nodeHours: number): object {
  const { largestLossIn60s, largestLossIn1h, ...rest } = counts;
  const perNodeDay = (count: number): number => rounded((count * 24) / nodeHours);
  return {
    ...rest,
    unplannedPerNodeDay: perNodeDay(counts.preempted),
    replacementsPerNodeDay: perNodeDay(counts.replacements),
    largestLossIn60s,
    largestLossIn1h,
  };
}

function rounded(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
