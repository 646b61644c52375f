import { anyKind, edit, type Mutant } from "./mutant.ts";

const interruption = "core/notice/interruption.ts";
const marks = "kube/node/mark-patch.ts";
const node = "core/cluster/node.ts";
const drainStep = "core/drain/drain-step.ts";
const evict = "kube/node/evict.ts";
const lastLook = "core/next/last-look.ts";
const machineRecord = "core/next/machine-record.ts";

/** Bugs in what is done to nodes and pods. */
export const actMutants: readonly Mutant[] = [
  {
    name: "a leader that cannot renew its Lease goes on",
    edits: [
      edit(
        "kube/lease/leader-lease.ts",
        "this.#term?.isValid() ?? false",
        "this.#term !== undefined",
      ),
      edit(
        "kube/lease/lease-store.ts",
        "if (leftMs <= 0) this.#lose(",
        "if (leftMs <= -1e9) this.#lose(",
      ),
      edit(
        "kube/lease/lease-store.ts",
        "await clock.sleep(millis(leftMs), this.#ended)",
        "await clock.sleep(seconds(1), this.#ended)",
      ),
      edit(
        "kube/lease/lease-store.ts",
        "if (isOthers && record.transitions >",
        "if (!isOthers && record.transitions >",
      ),
    ],
    kinds: ["refuse-lease", "lost-answers", "pause"],
  },
  {
    name: "another node of the same name counts as the same one",
    edits: [
      edit(node, 'if (then.uid !== now.uid) return "OtherNode";', ""),
      edit(node, "then.providerID !== undefined && then.providerID !== now.providerID", "false"),
      edit(node, "then.bootID !== undefined && then.bootID !== now.bootID", "false"),
    ],
    kinds: ["registered-again", "reboot", "watch-blind"],
  },
  {
    name: "the uid of an evicted pod is not checked",
    edits: [edit(evict, "preconditions: { uid: pod.uid },", "")],
    kinds: ["late-writes"],
  },
  {
    name: "an eviction without an answer counts as done",
    edits: [
      edit(
        evict,
        'return { kind: "NoAnswer", message: error.message };',
        'return { kind: "Gone" };',
      ),
      edit(
        lastLook,
        "if (late.every((uid) => memory.drainedLate.includes(uid)))",
        "if (late.length >= 0)",
      ),
    ],
    kinds: ["flaky", "blackout"],
  },
  {
    name: "a proxy's 404 counts as gone",
    edits: [edit("kube/object/api-call.ts", 'fieldsOf(answer.body).kind === "Status" &&', "")],
    kinds: ["refuse-node-read", "refuse-eviction", "refuse-cordon"],
  },
  {
    name: "pods are deleted past their budgets where the policy says RollBack",
    edits: [
      edit(
        "core/drain-plan/drain-limit.ts",
        'if (rule.onTimeout !== "Proceed") return { kind: "None" };',
        'if (rule.onTimeout === "Wait") return { kind: "None" };',
      ),
    ],
    kinds: ["budget-closed"],
  },
  {
    name: "grace periods are cut",
    edits: [
      edit(evict, "const graceSeconds = graceNow?.();", "const graceSeconds = graceNow?.() ?? 1;"),
    ],
    kinds: anyKind,
  },
  {
    name: "pods that are not to be disturbed are evicted",
    edits: [
      edit(
        "core/drain/drain-turn.ts",
        "if (!untouchable.has(planned.reason)) return false;",
        "if (untouchable.has(planned.reason)) return false;",
      ),
      edit(
        "controller/controller.ts",
        "const detail = drainObstacle(plan, { rule, former });",
        "const detail = drainObstacle(plan, { rule, former }) && undefined;",
      ),
    ],
    kinds: anyKind,
  },
  {
    name: "a machine is released before its drain has ended",
    edits: [
      edit(
        drainStep,
        'if (allGone && about.unplanned.length === 0) return "Done";',
        'return "Done";',
      ),
      edit(
        lastLook,
        "if (late.every((uid) => memory.drainedLate.includes(uid)))",
        "if (late.length >= 0)",
      ),
    ],
    kinds: anyKind,
  },
  {
    name: "a pod that comes after the drain is not seen",
    edits: [
      edit(
        lastLook,
        "if (late.every((uid) => memory.drainedLate.includes(uid)))",
        "if (late.length >= 0)",
      ),
    ],
    kinds: ["late-binding"],
  },
  {
    name: "the pods of a kubelet that is silent count as gone",
    edits: [
      edit(
        "core/drain/drain-progress.ts",
        'plan.unreachable === "Noticed" || (isStuck && plan.unreachable === false)',
        "isStuck",
      ),
      edit(
        lastLook,
        "if (late.every((uid) => memory.drainedLate.includes(uid)))",
        "if (late.length >= 0)",
      ),
    ],
    kinds: ["partition"],
  },
  {
    name: "a pod's grace ends when the API server's clock is set",
    edits: [
      edit(
        "core/next/pod-deadline.ts",
        "return isSame ? pod : { ...pod, deletionAt: presentAt };",
        "return isSame ? pod : { ...pod, deletionAt: pod.deletionAt };",
      ),
    ],
    kinds: ["server-clock-off", "kill-all"],
  },
  {
    name: "an uncordon leaves the node cordoned",
    edits: [
      edit(
        marks,
        '{ op: "remove", path: "/spec/unschedulable" }',
        '{ op: "test", path: "/spec/unschedulable", value: true }',
      ),
    ],
    kinds: ["node-held", "budget-closed"],
  },
  {
    name: "an uncordon leaves the taint",
    edits: [edit(marks, "taint.key !== departingTaint &&", 'taint.key !== "none" &&')],
    kinds: ["node-held", "budget-closed"],
  },
  {
    name: "the cordon of somebody else is taken back",
    edits: [edit(marks, "isCordoned(node) && cordonedBefore !== undefined", "false")],
    kinds: ["node-cordoned", "budget-closed", "departure-requested"],
  },
  {
    name: "somebody's uncordon is not seen",
    edits: [
      edit(
        interruption,
        "if (ours && !node.unschedulable) return",
        "if (ours && node.unschedulable === undefined) return",
      ),
      edit(
        lastLook,
        "if (!node.unschedulable && isOurs(evaluation))",
        "if (node.unschedulable === undefined && isOurs(evaluation))",
      ),
    ],
    kinds: ["node-uncordoned"],
  },
  {
    name: "a machine is released before its id is recorded",
    edits: [
      edit(
        "core/next/release-steps.ts",
        "const { machine } = scene.departure.status;\n  // Not written yet.",
        "const { machine } = evaluation.status;\n  // Not written yet.",
      ),
    ],
    kinds: ["refuse-status"],
  },
  {
    name: "a dying node is uncordoned",
    edits: [
      edit("core/next/release-fault.ts", "if (isSame && seen.running)", "if (seen !== undefined)"),
    ],
    kinds: ["release-unanswered", "slow-stop"],
  },
  {
    name: "a machine that was recreated is released in the place of the old one",
    edits: [
      edit(
        machineRecord,
        "return existedAt(existingAt, { bornAt, asOf }, now.at) ? id : undefined;",
        "return existedAt(existingAt, { bornAt, asOf }, now.at) ? id : id;",
      ),
      edit(
        "core/next/release-steps.ts",
        "if (status.machine === undefined) {",
        "if (evaluation.memory.described === undefined) {",
      ),
    ],
    kinds: ["release-unanswered", "kill-at-write"],
  },
];
