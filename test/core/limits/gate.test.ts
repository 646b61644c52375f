import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { GateAnswer } from "../../../src/core/departure/decision.ts";
import { gateHolds, windowHold } from "../../../src/core/limits/gate.ts";
import type { Policy } from "../../../src/core/policy/policy.ts";
import { formatInstant } from "../../../src/core/time/time.ts";
import { aNode, aPolicy, at, daily } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");
const alerts = { url: "http://alerts", matchers: ['severity="critical"'] };
const gangs = new Map([["n1", undefined]]);
const quiet: GateAnswer = { alerts: [], blockingPods: new Map(), gangs };

interface Question {
  readonly policy?: Partial<Policy>;
  readonly node?: Partial<NodeFacts>;
  readonly answer?: GateAnswer;
}

function ask({ policy = {}, node = {}, answer = quiet }: Question): string {
  const asked = aPolicy(policy);
  const window = windowHold(asked, now);
  const [verdict] = gateHolds({ policy: asked, node: aNode("n1", node), answer, window, now });
  if (verdict === undefined) return "Allowed";
  const until = verdict.retryAt === undefined ? "" : ` ${formatInstant(verdict.retryAt)}`;
  return `${verdict.reason}${until}`;
}

describe("a gate", () => {
  it.each<[string, Question, string]>([
    ["is open if nothing holds the node", {}, "Allowed"],
    ["is shut while the policy is paused", { policy: { paused: true } }, "PolicyPaused"],
    [
      "is shut until the freeze is over",
      { policy: { gates: { blockingPods: [], freezeUntil: at("2026-12-01T00:00:00Z") } } },
      "Frozen 2026-12-01T00:00:00.000Z",
    ],
    [
      "is open from the instant at which the freeze ends",
      { policy: { gates: { blockingPods: [], freezeUntil: now } } },
      "Allowed",
    ],
    [
      "is shut outside the windows, and says when they open",
      { policy: { windows: [daily("22:00-06:00")] } },
      "OutsideWindow 2026-11-20T22:00:00.000Z",
    ],
    ["is open inside a window", { policy: { windows: [daily("12:00-13:00")] } }, "Allowed"],
    [
      "is shut at the end of a window, which is exclusive",
      { policy: { windows: [daily("11:00-12:00")] } },
      "OutsideWindow 2026-11-21T11:00:00.000Z",
    ],
    [
      "is shut while alerts fire",
      {
        policy: { gates: { blockingPods: [], alerts } },
        answer: { ...quiet, alerts: ["HighLatency"], blockingPods: new Map() },
      },
      "AlertsFiring",
    ],
    [
      "is shut while alerts are unknown",
      {
        policy: { gates: { blockingPods: [], alerts } },
        answer: { ...quiet, alerts: "Unknown", blockingPods: new Map() },
      },
      "AlertsUnknown",
    ],
    [
      "is shut while the host of Alertmanager is not allowed",
      {
        policy: { gates: { blockingPods: [], alerts } },
        answer: { ...quiet, alerts: "NotAllowed" },
      },
      "AlertsNotAllowed",
    ],
    [
      "is shut by a workload on several nodes",
      {
        policy: { gates: { blockingPods: [], gangWorkloads: "Hold" } },
        answer: { ...quiet, gangs: new Map([["n1", "JobSet ml/train on n1, n2"]]) },
      },
      "GangWorkload",
    ],
    [
      "is open for a node without a workload on several nodes",
      {
        policy: { gates: { blockingPods: [], gangWorkloads: "Hold" } },
        answer: { ...quiet, gangs: new Map([...gangs, ["n0", "JobSet ml/train on n0, n2"]]) },
      },
      "Allowed",
    ],
    [
      "is shut for a node that was not asked about",
      {
        policy: { gates: { blockingPods: [], gangWorkloads: "Hold" } },
        answer: { ...quiet, gangs: new Map([["n0", undefined]]) },
      },
      "GangsUnknown",
    ],
    [
      "is open for a workload on several nodes that the policy allows to end",
      {
        policy: { gates: { blockingPods: [], gangWorkloads: "Allow" } },
        node: { labels: { "cloud.google.com/gke-tpu-topology": "4x4" } },
        answer: { ...quiet, gangs: new Map([["n1", "JobSet ml/train on n1, n2"]]) },
      },
      "Allowed",
    ],
    [
      "is shut for a host of a slice",
      {
        policy: { gates: { blockingPods: [], gangWorkloads: "Hold" } },
        node: { labels: { "cloud.google.com/gke-tpu-topology": "4x4" } },
      },
      "GangWorkload",
    ],
    [
      "is shut while the workloads on several nodes could not be listed",
      {
        policy: { gates: { blockingPods: [], gangWorkloads: "Hold" } },
        answer: { ...quiet, gangs: "Unknown" },
      },
      "GangsUnknown",
    ],
    [
      "is shut by a blocking pod on the node",
      {
        policy: { gates: { blockingPods: [{}] } },
        answer: { ...quiet, alerts: [], blockingPods: new Map([["n1", "shop/batch-0"]]) },
      },
      "BlockingPod",
    ],
    [
      "is open for a node without the blocking pod",
      {
        policy: { gates: { blockingPods: [{}] } },
        answer: { ...quiet, alerts: [], blockingPods: new Map([["n0", "shop/batch-0"]]) },
      },
      "Allowed",
    ],
    [
      "is shut while the pods could not be listed",
      {
        policy: { gates: { blockingPods: [{}] } },
        answer: { ...quiet, alerts: [], blockingPods: "Unknown" },
      },
      "BlockingPodsUnknown",
    ],
    [
      "is shut by an indefinite hold",
      { node: { annotations: { "lastcall.dev/hold": "true" } } },
      "OnHold",
    ],
    [
      "is shut by a hold until it ends",
      { node: { annotations: { "lastcall.dev/hold": "2026-11-20T13:00:00Z" } } },
      "OnHold 2026-11-20T13:00:00.000Z",
    ],
    [
      "is shut for a node that another tool drains",
      { node: { taints: [{ key: "karpenter.sh/disrupted", effect: "NoSchedule" }] } },
      "LeftToOthers",
    ],
    ["is shut for a node that is being deleted", { node: { deletionAt: now } }, "NodeTerminating"],
  ])("%s", (_, question, expected) => {
    expect(ask(question)).toBe(expected);
  });

  it.each<[string, Policy["gates"], string]>([
    ["alerts", { blockingPods: [], alerts }, "AlertsUnknown"],
    ["blocking pods", { blockingPods: [{}] }, "BlockingPodsUnknown"],
    ["workloads on several nodes", { blockingPods: [], gangWorkloads: "Hold" }, "GangsUnknown"],
  ])("that has not been queried about %s is shut", (_, gates, reason) => {
    const [verdict] = gateHolds({
      policy: aPolicy({ gates }),
      node: aNode("n1"),
      ...{ answer: undefined, window: undefined },
      now,
    });
    expect(verdict).toMatchObject({ kind: "Held", reason });
  });
});
