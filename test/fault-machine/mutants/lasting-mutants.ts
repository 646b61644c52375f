import { edit, type Mutant } from "./mutant.ts";

const withoutRecord = "core/next/without-record.ts";

/** Bugs that only a fault of an hour shows: the mends of such faults, taken away. */
export const lastingMutants: readonly Mutant[] = [
  {
    name: "a budget that stays used up is overridden for all that wait",
    edits: [
      edit(
        "core/plan/start-queue.ts",
        "nextAt = Math.floor(Math.min(one.endsAt - marginMs, nextAt - gap));",
        "nextAt = Math.floor(one.endsAt - marginMs);",
      ),
      edit(
        "core/plan/start-queue.ts",
        "return Math.floor(Math.max(fits, leastGapMs(minMs)));",
        "return Math.floor(Math.min(fits, 0));",
      ),
    ],
    kinds: ["node-cordoned"],
  },
  {
    name: "a start whose cordon is refused for hours is neither given up nor asked again",
    edits: [
      edit(
        "core/next/check-steps.ts",
        "if (held !== undefined) return",
        'if (held?.reason === "AlertsFiring") return',
      ),
      edit("core/next/check-steps.ts", "startedAt !== undefined &&", "startedAt === undefined &&"),
      edit(
        "core/next/given-up.ts",
        "startFailingMs: Millis = minutes(1)",
        "startFailingMs: Millis = minutes(1e6)",
      ),
    ],
    kinds: ["refuse-cordon"],
  },
  {
    name: "the time without a leader counts against a drain",
    edits: [
      edit(
        "core/next/drain-steps.ts",
        "startedAt: deadlineAt === undefined ? minus(now.at, activeMs) : before.beganAt,",
        "startedAt: deadlineAt === undefined ? minus(before.beganAt, millis(0)) : before.beganAt,",
      ),
      edit(
        "core/next/last-look.ts",
        "if (late.every((uid) => memory.drainedLate.includes(uid)))",
        "if (late.length >= 0)",
      ),
    ],
    kinds: ["kill-at-write", "kill-all", "blackout"],
  },
  {
    name: "a budget does not count a departure whose node has left the policy",
    edits: [
      edit(
        "core/limits/budget.ts",
        "if (there?.policy === policy) continue;",
        "if (policy !== there) continue;",
      ),
    ],
    kinds: ["node-relabelled", "policy-narrowed"],
  },
  {
    name: "a departure that is due and held is moved in every pass",
    edits: [
      edit(
        "core/decide.ts",
        "const isThere = departure.departAt === departAt || isDue;",
        "const isThere = departure.departAt === departAt || (isDue && departAt < 0);",
      ),
      edit(
        "core/plan/late-move.ts",
        "return departure.policy !== policy || !starting.has(policy) || pushed.has(policy);",
        "return departure.policy !== policy || starting.size >= pushed.size || true;",
      ),
      edit(
        "controller/pass-pace.ts",
        "if (!hasMoved) return soonest;",
        "if (!hasMoved || quickPasses >= 0) return soonest;",
      ),
    ],
    kinds: ["departure-held", "kill-all"],
  },
  {
    name: "the actions of a deleted Departure stay in effect if nobody leads",
    edits: [
      edit(
        "controller/departure-writer.ts",
        "if (guarded === undefined || hasFinalizer(current)) return",
        "if (guarded === undefined || current) return",
      ),
    ],
    kinds: ["policy-acts", "departure-deleted", "kill-all"],
  },
  {
    name: "a roll-back that cannot be recorded is not carried out",
    edits: [
      edit(withoutRecord, "recordedWithinMs = minutes(1)", "recordedWithinMs = minutes(1e6)"),
    ],
    kinds: ["refuse-status"],
  },
  {
    name: "a node that was given back without a record is drained by the next leader",
    edits: [
      edit(
        withoutRecord,
        "if (isThere && read.node?.unschedulable === false)",
        "if (isThere && read.node === undefined)",
      ),
    ],
    kinds: ["refuse-status", "kill"],
  },
  {
    name: "a kubelet that falls silent counts as having withdrawn its notice",
    edits: [
      edit(
        "core/notice/node-notice.ts",
        "if (!reports(node, source)) return false;",
        'if (!reports(node, source) && source === "") return false;',
      ),
    ],
    kinds: ["shut-down", "partition"],
  },
  {
    name: "a request asks no budget",
    edits: [
      edit(
        "core/decide.ts",
        'unhealthy ?? (budget.kind === "Held" ? budget : standingConflict(departure, pass));',
        "unhealthy ?? (budget === undefined ? budget : standingConflict(departure, pass));",
      ),
    ],
    kinds: ["departure-requested", "stock-out"],
  },
];
