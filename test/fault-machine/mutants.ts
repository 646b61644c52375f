/**
 * Deliberate bugs, each of a kind that was once real: a change of a few characters in one file of
 * `src`. `npm run sim:mutants` says which checker catches each, and after how many seeds.
 */
export interface Mutant {
  /** What the controller does wrong. */
  readonly name: string;
  readonly file: string;
  /** Occurs once in the file. */
  readonly from: string;
  readonly to: string;
  /** The kinds of faults without which it makes no difference; default: any. */
  readonly kinds?: readonly string[];
}

const gate = "src/core/limits/gate.ts";

export const mutants: readonly Mutant[] = [
  {
    name: "a pause holds nothing back",
    file: gate,
    from: "if (policy.paused) return",
    to: "if (policy.paused === undefined) return",
    kinds: ["policy-paused"],
  },
  {
    name: "a freeze holds nothing back",
    file: gate,
    from: "now < freezeUntil",
    to: "now > freezeUntil",
    kinds: ["policy-frozen"],
  },
  {
    name: "the hold of a node is not seen",
    file: gate,
    from: 'hold.kind === "Always"',
    to: "hold === undefined",
    kinds: ["node-held"],
  },
  {
    name: "windows are always open",
    file: gate,
    from: "soon.spans.length > 0",
    to: "soon.spans.length >= 0",
    kinds: ["refuse-events", "kill-all"],
  },
  {
    name: "a budget lets one node more leave",
    file: "src/core/limits/budget.ts",
    from: "if (out < limit)",
    to: "if (out <= limit)",
    kinds: ["refuse-events"],
  },
  {
    name: "an uncordon leaves the node cordoned",
    file: "src/kube/node/node-marks.ts",
    from: '{ op: "remove", path: "/spec/unschedulable" }',
    to: '{ op: "test", path: "/spec/unschedulable", value: true }',
    kinds: ["node-held", "budget-closed"],
  },
  {
    name: "a leader acts on after its Lease has expired",
    file: "src/kube/lease/leader-lease.ts",
    from: "this.#term?.isValid() ?? false",
    to: "this.#term !== undefined",
    kinds: ["pause", "refuse-lease", "late-writes"],
  },
  {
    name: "pods are deleted past their budgets where the policy says RollBack",
    file: "src/core/drain/drain-step.ts",
    from: 'if (state.rule.onTimeout !== "Proceed") return { kind: "None" };',
    to: 'if (state.rule.onTimeout === "Wait") return { kind: "None" };',
    kinds: ["budget-closed"],
  },
];
