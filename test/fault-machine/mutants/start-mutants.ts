import { anyKind, edit, type Mutant } from "./mutant.ts";

const gate = "core/limits/gate.ts";
const budget = "core/limits/budget.ts";
const health = "core/limits/fleet-health.ts";
const triage = "core/plan/triage.ts";
const start = "core/plan/start.ts";
const interruption = "core/notice/interruption.ts";
const next = "core/next/next.ts";

/** Bugs that let a departure start which must not, or not yet. */
export const startMutants: readonly Mutant[] = [
  {
    name: "a pause holds nothing back",
    edits: [
      edit(triage, "if (policy.paused) return", "if (policy.paused === undefined) return"),
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
      edit(triage, 'hold.kind === "Always"', "hold === undefined"),
      edit(gate, 'hold.kind === "Always"', "hold === undefined"),
      edit(interruption, '"Planned" && isHeldAnew(departure, node)', '"LifecycleHook"'),
    ],
    kinds: ["node-held"],
  },
  {
    name: "the hold of a Departure is not seen",
    edits: [
      edit(start, "...(departure.hold ? [", "...(departure.hold === undefined ? ["),
      edit(next, "if (isPostponed(", "if (scene.isDeleted && isPostponed("),
      edit(interruption, "if (departure.hold) return", "if (departure.hold === undefined) return"),
      edit(triage, "departure === undefined || departure.hold)", "departure === undefined)"),
    ],
    kinds: ["departure-held"],
  },
  {
    name: "the marks of other tools are not seen",
    edits: [
      edit(gate, "const rival = rivalOf(node);", "const rival = rivalOf({ ...node, taints: [] });"),
      edit(
        triage,
        "const rival = rivalOf(node);",
        "const rival = rivalOf({ ...node, taints: [] });",
      ),
    ],
    kinds: ["autoscaler-mark"],
  },
  {
    name: "nothing is asked again at the cordon",
    edits: [
      edit(
        "core/next/check-steps.ts",
        "if (held !== undefined) return",
        'if (held?.reason === "AlertsFiring") return',
      ),
      edit("core/next/check-steps.ts", "scene.newestPolicy()", "scene.policy"),
    ],
    kinds: ["policy-paused", "policy-frozen", "refuse-cordon"],
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
    edits: [
      edit(health, "return notReady >= fewestUnhealthy &&", "return nodes < 0 &&"),
      edit(health, "const isWhole = cluster.nodes > 1 &&", "const isWhole = cluster.nodes < 0 &&"),
    ],
    kinds: ["partition"],
  },
  {
    name: "the brake for machines that do not come back is off",
    edits: [edit(health, "if (first === undefined ||", "if (first !== undefined ||")],
    kinds: ["stock-out"],
  },
  {
    name: "the reserve is forgotten",
    edits: [
      edit(
        "core/plan/lifetime-end.ts",
        "minus(endsAt, policy.lifetime.reserveMs)",
        "(policy === undefined ? born : endsAt)",
      ),
    ],
    kinds: anyKind,
  },
  {
    name: "departures keep no distance",
    edits: [edit("config/policy/policy-from-spec.ts", "minMs: spanOf(spacing.min)", "minMs: 1000")],
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
  {
    name: "a node that nobody took is drained again after a moment",
    edits: [
      edit(
        "core/departure/node-rest.ts",
        "ends) as Instant, millis(restMs)",
        "ends) as Instant, millis(0)",
      ),
    ],
    kinds: anyKind,
  },
];
