import type { NodeFacts } from "./cluster/node.ts";
import type { Departure } from "./departure/departure.ts";
import type { Snapshot } from "./departure/snapshot.ts";
import type { BudgetUsage } from "./limits/budget.ts";
import type { GateHold } from "./limits/gate.ts";
import type { WaveStanding } from "./limits/wave.ts";
import type { NotPlanned, PlannedDeparture } from "./plan/fleet-plan.ts";
import type { BadPolicy, Policy } from "./policy/policy.ts";
import type { ReleasabilityQuestion } from "./policy/release-answer.ts";
import type { Instant } from "./time/time.ts";

/** A node's place in the plan, and the policy whose plan it is. */
export interface Planned {
  readonly entry: PlannedDeparture;
  readonly policy: Policy;
}

/** What one pass knows: the snapshot, indexed, and the plan made from it. */
export interface Pass {
  readonly snapshot: Snapshot;
  readonly now: Instant;
  readonly planned: ReadonlyMap<string, Planned>;
  readonly left: ReadonlyMap<string, NotPlanned>;
  readonly former: ReadonlyMap<string, readonly Departure[]>;
  readonly named: ReadonlyMap<string, Departure>;
  readonly nodes: ReadonlyMap<string, NodeFacts>;
  /** By node; advice that waits is none of them. */
  readonly live: ReadonlyMap<string, Departure>;
  /** Policies that cannot be read, by name. */
  readonly bad: ReadonlyMap<string, BadPolicy>;
  /** What has begun in this pass is in it: all policies' budgets are asked one after the other. */
  ledger: BudgetUsage;
  /** Policies of which a departure begins in this pass: the next one waits for it to be seen. */
  readonly begun: Set<string>;
  /** Where the waves of each policy stand. */
  readonly waves: ReadonlyMap<string, WaveStanding | undefined>;
  /** What the windows of a policy say now, asked once. */
  readonly windows: (policy: Policy) => GateHold | undefined;
  /** When the first hold ends. */
  wakeAt: Instant | undefined;
  /** What the clouds are to be asked before more can be decided. */
  readonly asks: ReleasabilityQuestion[];
}
