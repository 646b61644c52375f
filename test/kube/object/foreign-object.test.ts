/** Many programs write Nodes: a malformed one does not cost another its notice. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../../src/contracts/kube-api.ts";
import { callsOfMarks, noticeOfNode } from "../../../src/core/notice/node-notice.ts";
import type { Notice } from "../../../src/core/notice/notice.ts";
import { defaultPolicy } from "../../../src/core/policy/policy.ts";
import { instant } from "../../../src/core/time/time.ts";
import { translateNode } from "../../../src/kube/object/translate-node.ts";
import { foreignObject, foreignValue } from "../../support/foreign-object.ts";

const at = instant(Date.UTC(2026, 7, 1, 5, 40));
const deadlineAt = Date.UTC(2026, 7, 1, 5, 41, 2);
const eventId = "602d9444-d2cd-49c7-8624-8643e7171297";
const message = `Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 GMT. DurationInSeconds: -1. EventId: ${eventId}`;
const providerID = "azure:///subscriptions/s/resourceGroups/g/virtualMachines/aks-1";

/** Within the limits of the API: a Departure with a longer source is refused. */
function expectSound({ cause, deadlineAt: due, noticedAt, source, eventId: id }: Notice): void {
  const causes = ["SpotInterruption", "LifecycleHook", "ScheduledMaintenance", "NodeShutdown"];
  expect([...causes, "RebalanceRecommendation"]).toContain(cause);
  expect(due === undefined || Number.isFinite(due)).toBe(true);
  expect(Number.isFinite(noticedAt)).toBe(true);
  expect(`${source}/${id}`).toMatch(/^[\x21-\x7e]{1,253}$/);
}

describe("a malformed Node", () => {
  const shuttingDown = { type: "Ready", status: "False", message: "node is shutting down" };
  const evicted = {
    ...{ type: "PreemptionScheduled", status: "True", reason: "SpotEvictionIncoming", message },
  };
  const rebooted = {
    ...{ type: "VMEventScheduled", status: "True", reason: "RebootScheduled", message: "soon" },
  };

  function nodeWith(...conditions: unknown[]): KubeObject {
    return {
      metadata: {
        ...{ name: "aks-1", uid: "0b1f7a3e-7f0e", creationTimestamp: "2026-08-01T00:00:00Z" },
        labels: { "kubernetes.azure.com/scalesetpriority": "spot" },
        annotations: { "lastcall.dev/hold": "4h", "lastcall.dev/departure": "aks-1-0b1f7a3e" },
      },
      spec: { providerID, taints: [{ key: "spot", value: "true", effect: "NoSchedule" }] },
      status: {
        nodeInfo: { bootID: "boot-1" },
        allocatable: { cpu: "1900m", memory: "4Gi" },
        conditions,
      },
    };
  }

  const samples = [nodeWith(shuttingDown), nodeWith(evicted), nodeWith(rebooted)];

  it("is read without throwing, as a valid notice or none", () => {
    let notices = 0;
    fc.assert(
      fc.property(foreignObject(samples), (object) => {
        const node = translateNode(object);
        const notice = noticeOfNode(node, at);
        if (notice !== undefined) {
          notices += 1;
          expectSound(notice);
        }
        const policies = [{ ...defaultPolicy, name: "spot" }];
        const none = { departuresOf: () => [], departureNamed: () => undefined };
        const calls = callsOfMarks([node], { policies, at, ...none });
        expect(calls.length).toBeLessThanOrEqual(notice === undefined ? 0 : 1);
      }),
      { seed: 20_261_123, numRuns: 3000 },
    );
    expect(notices).toBeGreaterThan(300);
  });

  /** Parts that do not indicate a notice. */
  const idle = fc.record({
    metadata: fc.record({ labels: foreignValue, annotations: foreignValue }),
    spec: fc.record({ taints: foreignValue, unschedulable: foreignValue }),
    allocatable: foreignValue,
    addresses: foreignValue,
  });
  const isWord = (one: unknown) => typeof one === "string" && /Scheduled|Started|Advis/.test(one);
  const wordless = foreignValue.filter((one) => !isWord(one));
  const idleCondition = fc.oneof(
    fc.constantFrom(null, 7, "Ready", [], {}),
    fc.record({ type: foreignValue, status: foreignValue, message: foreignValue }),
    fc.record({
      type: fc.constantFrom("PreemptionScheduled", "VMEventScheduled"),
      status: fc.constantFrom("False", "Unknown", "true", true, null, {}),
      reason: foreignValue,
    }),
    fc.record({
      ...{ type: fc.constant("VMEventScheduled"), status: fc.constant("True") },
      ...{ reason: foreignValue, message: wordless },
    }),
  );

  it.each([
    [
      "that Azure evicts the node",
      evicted,
      { cause: "SpotInterruption", deadlineAt, source: "node/PreemptionScheduled", eventId },
    ],
    [
      "that the kubelet is shutting down",
      shuttingDown,
      { cause: "NodeShutdown", source: "node/Ready", eventId: "shutdown-boot-1" },
    ],
  ])("still says %s, whatever else it contains", (_, condition, wanted) => {
    const around = fc.array(idleCondition, { maxLength: 4 });
    fc.assert(
      fc.property(idle, around, around, (odd, before, after) => {
        const { metadata, spec, status } = nodeWith(...before, condition, ...after);
        const node = translateNode({
          metadata: { ...metadata, ...odd.metadata },
          spec: { ...(spec as object), ...odd.spec },
          status: { ...(status as object), allocatable: odd.allocatable, addresses: odd.addresses },
        } as KubeObject);
        expect(noticeOfNode(node, at)).toEqual({ noticedAt: at, ...wanted });
      }),
      { seed: 20_261_124, numRuns: 1500 },
    );
  });
});
