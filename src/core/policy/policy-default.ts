import { minutes } from "../time/time.ts";
import type { Policy } from "./policy.ts";

/** A policy that says nothing: every field with the default of contract.md. */
export const defaultPolicy: Policy = Object.freeze({
  name: "",
  weight: 0,
  lifetime: { minMs: minutes(0), reserveMs: minutes(30) },
  spacing: { mode: "Late", minMs: minutes(15) },
  windows: [],
  budgets: [],
  gates: { blockingPods: [] },
  replacement: { when: "None", timeoutMs: minutes(10), onTimeout: "Proceed" },
  drain: {
    timeoutMs: minutes(5),
    onTimeout: "RollBack",
    onSingleReplica: "Wait",
    budgetShare: 0.5,
    podRules: [],
  },
  onNotice: { spotInterruption: "Drain", rebalance: "Ignore", maintenance: "Drain" },
  instance: { release: "Recreate", awaitMachineMs: minutes(30), loadBalancerDelayMs: minutes(0) },
  paused: false,
  dryRun: false,
} satisfies Policy);
