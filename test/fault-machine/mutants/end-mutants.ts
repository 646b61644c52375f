import { anyKind, edit, type Mutant } from "./mutant.ts";

const interruption = "core/notice/interruption.ts";
const drainStep = "core/drain/drain-step.ts";
const writer = "controller/departure-writer.ts";

/** Bugs that leave something behind, never end, or say what is not so. */
export const endMutants: readonly Mutant[] = [
  {
    name: "the finalizer is forgotten",
    edits: [
      edit(
        writer,
        "if (guarded === undefined || hasFinalizer(current)) return",
        "if (guarded === undefined || current) return",
      ),
    ],
    kinds: ["departure-deleted"],
  },
  {
    name: "marks without a Departure stay",
    edits: [
      edit(
        "core/decide.ts",
        "const departure = orphanOn(node, live);",
        "const departure = orphanOn(node, live) && undefined;",
      ),
      edit(
        writer,
        "if (guarded === undefined || hasFinalizer(current)) return",
        "if (guarded === undefined || current) return",
      ),
    ],
    kinds: ["departure-deleted", "kill-all"],
  },
  {
    name: "the actions of a departure that is rolled back stay in effect",
    edits: [
      edit(
        "core/next/next.ts",
        "return [capacityFreed, actionsUndone, uncordoned, recorded, rolledBack];",
        "return [capacityFreed, uncordoned, recorded, rolledBack];",
      ),
    ],
    kinds: ["policy-acts", "departure-held", "node-held"],
  },
  {
    name: "placeholders stay",
    edits: [
      edit(
        "core/next/capacity-steps.ts",
        "if (!hasReserved(evaluation.status)) return undefined;",
        "if (evaluation.status) return undefined;",
      ),
      edit(
        "controller/plan-reconciler.ts",
        "if (dryRun) return;\n    const newest",
        "return;\n    const newest",
      ),
    ],
    kinds: ["budget-closed"],
  },
  {
    name: "a notice is handled as a plan",
    edits: [
      edit(
        "core/departure/departure.ts",
        "return noticedAt !== undefined || !isVoluntary(cause);",
        "return noticedAt !== undefined && isVoluntary(cause);",
      ),
    ],
    kinds: ["notice", "notice-storm"],
  },
  {
    name: "a machine that is silent counts as having outlived its notice",
    edits: [edit(interruption, "return node?.ready === true &&", "return node !== undefined &&")],
    kinds: ["notice-unfulfilled", "machine-stopped"],
  },
  {
    name: "a conflict is tried again for ever",
    edits: [
      edit(
        writer,
        "if (!isRefusal && tries < mostTries) return;",
        "if (isRefusal || tries < mostTries || tries) return;",
      ),
    ],
    kinds: ["refuse-status"],
  },
  {
    name: "requests that are refused are sent for ever",
    edits: [
      edit(
        "core/next/given-up.ts",
        "const endsMs = trouble.sinceMs + mostMs;",
        "const endsMs = trouble.sinceMs + 1e6 * mostMs;",
      ),
    ],
    kinds: ["refuse-cordon", "refuse-node-read"],
  },
  {
    name: "a drain has no end",
    edits: [
      edit(
        drainStep,
        "return plus(state.startedAt, timeoutSpan(state));\n}",
        "return undefined;\n}",
      ),
    ],
    kinds: ["budget-closed", "pods-stuck"],
  },
  {
    name: "a machine that nobody takes is awaited for ever",
    edits: [
      edit(
        "core/next/cloud-takes.ts",
        'if (recordedAt === undefined) return "Wait";',
        'if (recordedAt === undefined || !evaluation.isNoticed) return "Wait";',
      ),
    ],
    kinds: anyKind,
  },
  {
    name: "a node that vanishes counts as released by us",
    edits: [
      edit(
        "core/departure/ledger.ts",
        "if (byCloud || takenByCloud(facts))",
        "if (byCloud || (takenByCloud(facts) && byCloud))",
      ),
    ],
    kinds: ["taken-unannounced"],
  },
  {
    name: "a node that the watch has lost counts as gone",
    edits: [
      edit(
        "core/next/interrupted.ts",
        "const isLost = read && interruptionOf(evaluation.departure, read.node)?.event === event;",
        "const isLost = read !== undefined;",
      ),
    ],
    kinds: ["watch-partial"],
  },
  {
    name: "a Node whose machine could not be released is deleted",
    edits: [
      edit(
        "core/next/release-steps.ts",
        "const isGone = evaluation.memory.releasedNumber !== undefined;",
        "const isGone = evaluation.memory.releasedNumber === undefined;",
      ),
    ],
    kinds: anyKind,
  },
];
