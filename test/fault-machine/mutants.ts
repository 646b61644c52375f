/**
 * Deliberate bugs, each of a kind that was once real: a change of a few characters in `src`.
 * `npm run sim:mutants` says which checker catches each, and after how many seeds.
 */
export interface Mutant {
  /** What the controller does wrong. */
  readonly name: string;
  /** Several, where a second guard stands behind the first. */
  readonly edits: readonly Edit[];
  /** The kinds of faults without which it makes no difference. */
  readonly kinds: readonly string[];
}

export interface Edit {
  readonly file: string;
  /** Occurs once in the file. */
  readonly from: string;
  readonly to: string;
}

/** A fault that changes nothing about departures: for bugs that need none. */
const anyKind = ["refuse-events"];

function edit(file: string, from: string, to: string): Edit {
  return { file: `src/${file}`, from, to };
}

const gate = "core/limits/gate.ts";
const budget = "core/limits/budget.ts";
const health = "core/limits/fleet-health.ts";
const fleetPlan = "core/plan/fleet-plan.ts";
const policyPlan = "core/plan/policy-plan.ts";
const start = "core/plan/start.ts";
const interruption = "core/notice/interruption.ts";
const marks = "kube/node/node-marks.ts";
const node = "core/cluster/node.ts";
const drainStep = "core/drain/drain-step.ts";
const evict = "kube/node/evict.ts";
const release = "controller/departure/release.ts";
const run = "controller/departure/run.ts";
const machineCheck = "controller/departure/machine-check.ts";
const writer = "controller/departure-writer.ts";

/** Bugs that let a departure start which must not, or not yet. */
const startMutants: readonly Mutant[] = [
  {
    name: "a pause holds nothing back",
    edits: [
      edit(fleetPlan, "if (policy.paused) return", "if (policy.paused === undefined) return"),
      edit(gate, "if (policy.paused) return", "if (policy.paused === undefined) return"),
    ],
    kinds: ["policy-paused"],
  },
  {
    name: "a freeze holds nothing back",
    edits: [edit(gate, "now < freezeUntil", "now > freezeUntil")],
    kinds: ["policy-frozen"],
  },
  {
    name: "the hold of a node is not seen",
    edits: [
      edit(fleetPlan, 'hold.kind === "Always"', "hold === undefined"),
      edit(gate, 'hold.kind === "Always"', "hold === undefined"),
      edit(interruption, '"Planned" && isHeldAnew(departure, node)', '"LifecycleHook"'),
    ],
    kinds: ["node-held"],
  },
  {
    name: "the hold of a Departure is not seen",
    edits: [
      edit(start, "...(departure.hold ? [", "...(departure.hold === undefined ? ["),
      edit(run, '"Due" && isPostponed(', '"Drained" && isPostponed('),
      edit(interruption, "if (departure.hold) return", "if (departure.hold === undefined) return"),
      edit(fleetPlan, "departure === undefined || departure.hold)", "departure === undefined)"),
    ],
    kinds: ["departure-held"],
  },
  {
    name: "nothing is asked again at the cordon",
    edits: [
      edit(
        "controller/departure/asked-at-the-act.ts",
        "if (held !== undefined) {",
        'if (held?.reason === "AlertsFiring") {',
      ),
    ],
    kinds: ["policy-paused", "policy-frozen", "cloud-slow"],
  },
  {
    name: "windows are always open",
    edits: [edit(gate, "soon.spans.length > 0", "soon.spans.length >= 0")],
    kinds: ["refuse-events", "kill-all"],
  },
  {
    name: "a window is read in the wrong zone",
    edits: [
      edit(
        "core/limits/windows.ts",
        "startAt = instantOfWall(start, window.timeZone)",
        'startAt = instantOfWall(start, "Atlantic/Azores")',
      ),
      edit(
        "core/limits/windows.ts",
        "endAt: instantOfWall(end, window.timeZone)",
        'endAt: instantOfWall(end, "Atlantic/Azores")',
      ),
    ],
    kinds: anyKind,
  },
  {
    name: "a budget lets one node more leave",
    edits: [edit(budget, "if (out < limit)", "if (out <= limit)")],
    kinds: anyKind,
  },
  {
    name: "a budget counts a departure only once it drains",
    edits: [
      edit(
        budget,
        "return isUnderWay(departure) || !isVoluntary",
        'return departure.status.phase === "Draining" || !isVoluntary',
      ),
      edit(budget, "!node.ready || node.unschedulable ||", "!node.ready ||"),
    ],
    kinds: ["slow-stop", "cloud-slow"],
  },
  {
    name: "a budget does not count nodes that are not ready",
    edits: [edit(budget, "!node.ready || node.unschedulable ||", "node.unschedulable ||")],
    kinds: ["partition"],
  },
  {
    name: "a budget forgets machines that are missing",
    edits: [edit(budget, "const out = isReleased ?", "const out = isReleased === undefined ?")],
    kinds: ["stock-out"],
  },
  {
    name: "the brake for a silent fleet is off",
    edits: [edit(health, "return notReady >= fewestUnhealthy &&", "return nodes < 0 &&")],
    kinds: ["partition"],
  },
  {
    name: "the brake for machines that do not come back is off",
    edits: [edit(health, "if (first === undefined ||", "if (first !== undefined ||")],
    kinds: ["stock-out"],
  },
  {
    name: "the reserve is forgotten",
    edits: [edit(fleetPlan, "minus(endsAt, reserveMs)", "minus(endsAt, millis(0 * reserveMs))")],
    kinds: anyKind,
  },
  {
    name: "departures keep no distance",
    edits: [
      edit(
        policyPlan,
        "const { mode, minMs } = policy.spacing;",
        "const { mode } = policy.spacing; const minMs = 1000;",
      ),
    ],
    kinds: anyKind,
  },
  {
    name: "a clock that is off is believed",
    edits: [
      edit(
        "kube/server-clock.ts",
        "Math.abs(offsetMs) > toleranceMs ? offsetMs : 0",
        "Math.abs(offsetMs) > toleranceMs ? 0 : 0",
      ),
    ],
    kinds: ["clock-off"],
  },
  {
    name: "a drain that was in vain is tried again at once",
    edits: [
      edit(
        "controller/controller.ts",
        "const detail = drainObstacle(plan, { rule, former });",
        "const detail = drainObstacle(plan, { rule, former }) && undefined;",
      ),
    ],
    kinds: anyKind,
  },
];

/** Bugs in what is done to nodes and pods. */
const actMutants: readonly Mutant[] = [
  {
    name: "a leader acts on after its Lease has expired",
    edits: [
      edit(
        "kube/lease/leader-lease.ts",
        "this.#term?.isValid() ?? false",
        "this.#term !== undefined",
      ),
    ],
    kinds: ["pause", "refuse-lease", "late-writes"],
  },
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
    kinds: ["taken-unannounced", "registered-again", "shut-down"],
  },
  {
    name: "the uid of an evicted pod is not checked",
    edits: [edit(evict, "preconditions: { uid: pod.uid },", "")],
    kinds: ["late-writes", "flaky"],
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
        machineCheck,
        "if (toLeave.every(({ uid }) => this.#drained.has(uid)))",
        "if (toLeave.length >= 0)",
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
        drainStep,
        'if (state.rule.onTimeout !== "Proceed") return { kind: "None" };',
        'if (state.rule.onTimeout === "Wait") return { kind: "None" };',
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
        machineCheck,
        "if (toLeave.every(({ uid }) => this.#drained.has(uid)))",
        "if (toLeave.length >= 0)",
      ),
    ],
    kinds: anyKind,
  },
  {
    name: "a pod that comes after the drain is not seen",
    edits: [
      edit(
        machineCheck,
        "if (toLeave.every(({ uid }) => this.#drained.has(uid)))",
        "if (toLeave.length >= 0)",
      ),
    ],
    kinds: ["late-binding", "cloud-slow"],
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
        machineCheck,
        "if (toLeave.every(({ uid }) => this.#drained.has(uid)))",
        "if (toLeave.length >= 0)",
      ),
    ],
    kinds: ["partition"],
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
    kinds: ["node-cordoned", "budget-closed"],
  },
  {
    name: "somebody's uncordon is not seen",
    edits: [
      edit(
        interruption,
        "if (ours && !node.unschedulable) return",
        "if (ours && node.unschedulable === undefined) return",
      ),
    ],
    kinds: ["node-uncordoned"],
  },
  {
    name: "a dying node is uncordoned",
    edits: [
      edit(
        release,
        "return stays ? error : new LastcallError(",
        "return stays || error ? error : new LastcallError(",
      ),
    ],
    kinds: ["release-unanswered"],
  },
  {
    name: "a machine that was recreated is released in the place of the old one",
    edits: [
      edit(
        release,
        "machine?.id ?? (await describedId(asked, context, signal))",
        "await describedId(asked, context, signal)",
      ),
      edit(release, "written?.status.machine?.id ?? found", "found"),
      edit(
        release,
        "startedAt === undefined || bornAt <= startedAt) return id;",
        "startedAt === undefined || bornAt) return id;",
      ),
    ],
    kinds: ["release-unanswered", "kill-at-write"],
  },
];

/** Bugs that leave something behind, never end, or say what is not so. */
const endMutants: readonly Mutant[] = [
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
    kinds: ["departure-deleted", "kill-at-write"],
  },
  {
    name: "placeholders stay",
    edits: [
      edit(
        "controller/departure/capacity-reservation.ts",
        "own.map((one) => executor.removePlaceholder(one.name))",
        "own.map(async () => {})",
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
    kinds: ["notice", "machine-stopped", "shut-down"],
  },
  {
    name: "a conflict is tried again for ever",
    edits: [
      edit(
        writer,
        "if (tries === mostTries) throw conflictThatStays(departure);\n      const read",
        "const read",
      ),
    ],
    kinds: ["refuse-status"],
  },
  {
    name: "requests that are refused are sent for ever",
    edits: [
      edit(
        "controller/departure/failing.ts",
        "return this.#clock.monotonic() - this.#sinceMs >= mostMs;",
        "return false;",
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
    edits: [edit(release, "if (isOver && !byCloud) {", "if (isOver && byCloud && !byCloud) {")],
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
    kinds: ["node-deleted", "registered-again"],
  },
  {
    name: "a node that the watch has lost counts as gone",
    edits: [edit(run, "if (again?.event !== found.event) return undefined;", "")],
    kinds: ["watch-partial"],
  },
  {
    name: "a Node whose machine could not be released is deleted",
    edits: [
      edit(
        release,
        "if (found !== undefined) {\n      const written",
        "if (found === undefined) {\n      const written",
      ),
    ],
    kinds: anyKind,
  },
];

export const mutants: readonly Mutant[] = [...startMutants, ...actMutants, ...endMutants];
