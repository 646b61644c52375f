import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure, Phase } from "../../../src/core/departure/departure.ts";
import { interruptionOf } from "../../../src/core/notice/interruption.ts";
import { callsOfMarks, noticeOfNode } from "../../../src/core/notice/node-notice.ts";
import { defaultPolicy } from "../../../src/core/policy/policy.ts";
import { instant, plus, seconds } from "../../../src/core/time/time.ts";

const nowAt = instant(Date.UTC(2026, 7, 1, 5, 40));

function node(fields: Partial<NodeFacts> = {}): NodeFacts {
  return {
    name: "aks-1",
    uid: "0b1f7a3e-7f0e",
    bootID: "boot-1",
    labels: { "kubernetes.azure.com/scalesetpriority": "spot" },
    annotations: {},
    taints: [],
    unschedulable: false,
    ready: true,
    ...fields,
  };
}

const dying: Partial<NodeFacts> = {
  ready: false,
  readyMessage: "[container runtime is down, node is shutting down]",
};
const evicted: Partial<NodeFacts> = {
  noticeConditions: [
    {
      type: "PreemptionScheduled",
      reason: "SpotEvictionIncoming",
      message:
        "Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 GMT. DurationInSeconds: -1. EventId: 602d9444-d2cd-49c7-8624-8643e7171297",
    },
  ],
};

function event(reason: string, message = ""): Partial<NodeFacts> {
  return { noticeConditions: [{ type: "VMEventScheduled", reason, message }] };
}

const advised = ["RebalanceRecommendation", undefined] as const;

describe("a node's own marks", () => {
  it("are no notice while it is ready, or if it is not ready for another reason", () => {
    expect(noticeOfNode(node(), nowAt)).toBeUndefined();
    const other = node({ ready: false, readyMessage: "Kubelet stopped posting node status." });
    expect(noticeOfNode(other, nowAt)).toBeUndefined();
  });

  it("report the kubelet's shutdown, among other problems", () => {
    const notice = noticeOfNode(node(dying), nowAt);
    expect(notice).toMatchObject({ cause: "NodeShutdown", eventId: "shutdown-boot-1" });
    expect(notice).not.toHaveProperty("deadlineAt");
  });

  it("report an AKS eviction with its time and event ID", () => {
    expect(noticeOfNode(node(evicted), nowAt)).toEqual({
      cause: "SpotInterruption",
      deadlineAt: Date.UTC(2026, 7, 1, 5, 41, 2),
      noticedAt: nowAt,
      source: "node/PreemptionScheduled",
      eventId: "602d9444-d2cd-49c7-8624-8643e7171297",
    });
  });

  it.each([
    ["PreemptScheduled", "SpotInterruption"],
    ["TerminateScheduled", "LifecycleHook"],
    ["RebootScheduled", "ScheduledMaintenance"],
    ["RedeployScheduled", "ScheduledMaintenance"],
    ["FreezeScheduled", undefined],
    ["NoVMEventScheduled", undefined],
  ])("with reason %s mean %s", (reason, cause) => {
    expect(noticeOfNode(node(event(reason)), nowAt)?.cause).toBe(cause);
  });

  it("report an OpenShift termination, and no other condition of that type", () => {
    const terminating = (reason: string) =>
      noticeOfNode(
        node({ noticeConditions: [{ type: "Terminating", reason, message: "" }] }),
        nowAt,
      );
    expect(terminating("TerminationRequested")).toMatchObject({
      ...{ cause: "SpotInterruption", deadlineAt: plus(nowAt, seconds(30)) },
      source: "node/Terminating",
    });
    expect(terminating("Draining")).toBeUndefined();
  });

  const preempt = "Preempt Scheduled: Sat, 01 Aug 2026 05:41:02 GMT. DurationInSeconds: -1.";
  const reboot = "Reboot Scheduled: Sat, 01 Aug 2026 05:55:00 GMT. DurationInSeconds: -1.";
  const evictedAt = Date.UTC(2026, 7, 1, 5, 41, 2);
  const rebootAt = Date.UTC(2026, 7, 1, 5, 55);
  const soonAt = plus(nowAt, seconds(30));

  it.each([
    [preempt, "SpotInterruption", evictedAt],
    [preempt.replace("GMT", "UTC"), "SpotInterruption", evictedAt],
    [preempt.replace(" 01", "  1"), "SpotInterruption", evictedAt],
    [reboot, "ScheduledMaintenance", rebootAt],
    [reboot.replace("Reboot", "Redeploy"), "ScheduledMaintenance", rebootAt],
    [reboot.replace("Reboot", "Terminate"), "LifecycleHook", rebootAt],
    // The time that it names is the start, which is past.
    ["Preempt Started: Sat, 01 Aug 2099 05:41:02 GMT.", "SpotInterruption", soonAt],
    ["Started. DurationInSeconds: -1.", undefined, undefined],
    ["Freeze Scheduled: Sat, 01 Aug 2026 05:41:02 GMT.", undefined, undefined],
    ["SpotRebalanceRecommendation Advisory: .", "RebalanceRecommendation", undefined],
    ["IMDS query failed, exit code: 28", undefined, undefined],
    ["Constructor Scheduled: Sat, 01 Aug 2026 05:41:02 GMT.", undefined, undefined],
  ])("are read from the message if the reason is the condition's own name: %s", (...row) => {
    const [message, cause, deadlineAt] = row;
    const notice = noticeOfNode(node(event("VMEventScheduled", message)), nowAt);
    expect([notice?.cause, notice?.deadlineAt]).toEqual([cause, deadlineAt]);
  });

  it.each([
    [preempt, "SpotInterruption", evictedAt],
    ["Spot eviction incoming", "SpotInterruption", soonAt],
    ["SpotRebalanceRecommendation Advisory: Sat, 01 Aug 2026 05:41:02 GMT.", ...advised],
    ["Terminate Scheduled: Sat, 01 Aug 2026 05:55:00 GMT.", "LifecycleHook", rebootAt],
    ["IMDS query failed, exit code: 28", undefined, undefined],
  ])("report an eviction by its own condition, unless it is only advice: %s", (...row) => {
    const [message, cause, deadlineAt] = row;
    const said = { type: "PreemptionScheduled", reason: "SpotEvictionIncoming", message };
    const notice = noticeOfNode(node({ noticeConditions: [said] }), nowAt);
    expect([notice?.cause, notice?.deadlineAt]).toEqual([cause, deadlineAt]);
  });

  it.each([
    ["Scheduled: Sat, 01 Aug 2026 05:41:02 GMT. DurationInSeconds: -1.", evictedAt],
    ["Started. DurationInSeconds: -1.", soonAt],
    ["IMDS query failed, exit code: 28\nConnection timed out after 24 seconds.", undefined],
    ["Timeout when running plugin", undefined],
  ])("name a time, unless the node's own query failed: %s", (message, deadlineAt) => {
    const said = { type: "PreemptScheduled", reason: "PreemptScheduled", message };
    const notice = noticeOfNode(node({ noticeConditions: [said] }), nowAt);
    expect(notice?.deadlineAt).toBe(deadlineAt);
  });

  it.each([
    ["PreemptScheduled", "SpotInterruption", soonAt],
    ["TerminateScheduled", "LifecycleHook", undefined],
    ["RebootScheduled", "ScheduledMaintenance", undefined],
    ["RedeployScheduled", "ScheduledMaintenance", undefined],
  ])("report an event by the condition that older AKS nodes have for it: %s", (...row) => {
    const [type, cause, deadlineAt] = row;
    const noticeConditions = [{ type, reason: type, message: "" }];
    const notice = noticeOfNode(node({ noticeConditions }), nowAt);
    expect([notice?.cause, notice?.deadlineAt]).toEqual([cause, deadlineAt]);
  });

  it("merge into one notice with the most serious cause and the earliest deadline", () => {
    const noticeConditions = [
      { type: "VMEventScheduled", reason: "VMEventScheduled", message: reboot },
      { type: "PreemptionScheduled", reason: "SpotEvictionIncoming", message: preempt },
    ];
    for (const conditions of [noticeConditions, noticeConditions.toReversed()]) {
      const notice = noticeOfNode(node({ ...dying, noticeConditions: conditions }), nowAt);
      expect(notice).toMatchObject({ cause: "SpotInterruption", deadlineAt: evictedAt });
    }
  });

  it("give a preemption without a readable time the shortest notice there is", () => {
    const notice = noticeOfNode(node(event("PreemptScheduled", "soon")), nowAt);
    expect(notice?.deadlineAt).toBe(plus(nowAt, seconds(30)));
  });
});

describe("a departure for a node's mark", () => {
  const policies = [{ ...defaultPolicy, name: "spot" }];

  function calls(one: NodeFacts, departures: readonly Departure[] = [], at = nowAt) {
    const departuresOf = (uid: string) => departures.filter((former) => former.node.uid === uid);
    const departureNamed = (name: string) => departures.find((former) => former.name === name);
    return callsOfMarks([one], { policies, at, departuresOf, departureNamed });
  }

  function orders(one: NodeFacts, departures: readonly Departure[] = []) {
    return calls(one, departures).flatMap((call) => (call.kind === "Make" ? call.order : []));
  }

  function departure(fields: Partial<Departure> & { phase?: Phase }) {
    const { phase = "Ended", ...rest } = fields;
    return {
      name: "aks-1-0b1f7a3e",
      uid: "d1",
      resourceVersion: "1",
      node: { name: "aks-1", uid: "0b1f7a3e-7f0e", bootID: "boot-1" },
      cause: "Planned" as const,
      hold: false,
      status: { phase, timeline: [] },
      ...rest,
    };
  }

  it("names the node with its boot ID, the cause and the event", () => {
    expect(orders(node(evicted))).toMatchObject([
      {
        name: "aks-1-0b1f7a3e",
        node: { name: "aks-1", uid: "0b1f7a3e-7f0e", bootID: "boot-1" },
        cause: "SpotInterruption",
        source: "node/PreemptionScheduled/602d9444-d2cd-49c7-8624-8643e7171297",
      },
    ]);
  });

  it("is not made for a node that no policy owns", () => {
    expect(calls(node({ ...evicted, labels: {} }))).toEqual([]);
  });

  const evictedAt = instant(Date.UTC(2026, 7, 1, 5, 41, 2));
  const toldByAgent = { cause: "SpotInterruption", noticedAt: nowAt, source: "azure/e1" } as const;

  it.each([
    ["an agent has reported it", { ...toldByAgent, phase: "Scheduled", deadlineAt: evictedAt }],
    [
      "an agent has reported something less severe",
      { ...toldByAgent, phase: "Draining", deadlineAt: nowAt },
    ],
    ["its machine is released as planned", { phase: "Releasing" }],
  ] as const)("is not made if the node is leaving no later: %s", (_, fields) => {
    expect(calls(node(evicted), [departure(fields)])).toEqual([]);
  });

  it("is the planned or requested one that is draining the node, now with a deadline", () => {
    for (const cause of ["Planned", "Manual"] as const) {
      const draining = departure({ phase: "Draining", cause });
      expect(calls(node(evicted), [draining])).toMatchObject([
        { kind: "Force", departure: draining, update: { deadlineAt: evictedAt } },
      ]);
    }
  });

  it.each(["AwaitingMachine", "ReleaseRetried"] as const)(
    "is the one whose machine may still stay: %s",
    (reason) => {
      const waiting = departure({ status: { phase: "Releasing", reason, timeline: [] } });
      expect(calls(node(evicted), [waiting])).toMatchObject([
        { kind: "Force", departure: waiting, update: { deadlineAt: evictedAt } },
      ]);
    },
  );

  it("is none for a shutdown while another tool is to terminate the machine as planned", () => {
    const status = { phase: "Releasing", reason: "AwaitingMachine", timeline: [] } as const;
    expect(calls(node(dying), [departure({ status })])).toEqual([]);
  });

  it("keeps a person's own deadline if that is earlier", () => {
    const asked = departure({ phase: "Draining", cause: "Manual", deadlineAt: nowAt });
    for (const mark of [evicted, dying]) {
      expect(calls(node(mark), [asked])).toMatchObject([{ update: { deadlineAt: nowAt } }]);
    }
  });

  it("keeps the first source when a later deadline is brought forward", () => {
    const later = {
      ...toldByAgent,
      phase: "Draining",
      deadlineAt: plus(evictedAt, seconds(1)),
    } as const;
    expect(calls(node(evicted), [departure(later)])).toMatchObject([
      { kind: "Force", update: { deadlineAt: evictedAt, source: "azure/e1", noticedAt: nowAt } },
    ]);
  });

  it("is the one for maintenance, now with the more serious cause", () => {
    const reboot = departure({ ...toldByAgent, phase: "Scheduled", cause: "ScheduledMaintenance" });
    expect(calls(node(evicted), [reboot])).toMatchObject([
      { kind: "Force", update: { deadlineAt: evictedAt, cause: "SpotInterruption" } },
    ]);
  });

  it("is the planned one, now forced", () => {
    const planned = departure({ phase: "Scheduled" });
    expect(calls(node(evicted), [planned])).toEqual([
      {
        kind: "Force",
        departure: planned,
        update: {
          noticedAt: nowAt,
          deadlineAt: Date.UTC(2026, 7, 1, 5, 41, 2),
          source: "node/PreemptionScheduled/602d9444-d2cd-49c7-8624-8643e7171297",
          cause: "SpotInterruption",
        },
      },
    ]);
  });

  it("is made beside a planned one if a policy may ignore it, under the next free name", () => {
    const [order] = orders(node(event("RebootScheduled")), [departure({ phase: "Scheduled" })]);
    expect(order?.name).toBe("aks-1-0b1f7a3e-2");
    // The first record is gone after 72 hours; its name is free again.
    const [later] = orders(node(evicted), [departure({ name: "aks-1-0b1f7a3e-2" })]);
    expect(later?.name).toBe("aks-1-0b1f7a3e");
  });

  it("is made once per event and boot", () => {
    const source = "node/Ready/shutdown-boot-1";
    const ended = departure({ source, cause: "NodeShutdown" });
    expect(calls(node(dying), [ended])).toEqual([]);
    expect(orders(node({ ...dying, bootID: "boot-2" }), [ended])).toHaveLength(1);
  });

  it("is not made for the shutdown of a machine that we have released", () => {
    const status = { phase: "Ended", outcome: "Planned", timeline: [] } as const;
    const ended = departure({ source: "planner", cause: "Planned", status });
    expect(calls(node(dying), [ended])).toEqual([]);
    expect(orders(node({ ...dying, bootID: "boot-2" }), [ended])).toHaveLength(1);
  });

  it("waits for the end of a departure that is being rolled back", () => {
    const undone = { ...toldByAgent, phase: "RollingBack", withdrawnAt: nowAt } as const;
    expect(calls(node(evicted), [departure(undone)])).toEqual([]);
    expect(orders(node(evicted), [departure({ ...undone, phase: "Ended" })])).toHaveLength(1);
  });

  it("is made two hours before maintenance starts, and no earlier", () => {
    const reboot = "Reboot Scheduled: Sat, 01 Aug 2026 07:41:00 GMT. DurationInSeconds: -1.";
    const told = node(event("VMEventScheduled", reboot));
    expect(calls(told)).toEqual([]);
    expect(calls(told, [], plus(nowAt, seconds(60)))).toHaveLength(1);
    // An eviction beside it does not wait.
    const both = [...(told.noticeConditions ?? []), ...(evicted.noticeConditions ?? [])];
    expect(calls(node({ noticeConditions: both }))).toHaveLength(1);
  });

  it("is withdrawn when the mark goes", () => {
    const fields = { source: "node/Ready/shutdown-boot-1", cause: "NodeShutdown" } as const;
    const live = departure({ ...fields, phase: "Draining", noticedAt: nowAt });
    expect(interruptionOf(live, node(dying))).toBeUndefined();
    expect(interruptionOf(live, node())).toEqual({ event: "Withdrawn", reason: "NoticeWithdrawn" });
  });

  it("is not withdrawn when the kubelet falls silent: its machine is probably off", () => {
    const fields = { source: "node/Ready/shutdown-boot-1", cause: "NodeShutdown" } as const;
    const live = departure({ ...fields, phase: "Draining", noticedAt: nowAt });
    const readyMessage = "Kubelet stopped posting node status.";
    const silent = node({ ready: false, isUnreachable: true, readyMessage });
    expect(interruptionOf(live, silent)).toBeUndefined();
    // A kubelet that reports something else is not shutting down.
    const other = node({ ready: false, readyMessage: "container runtime is down" });
    expect(interruptionOf(live, other)).toMatchObject({ event: "Withdrawn" });
  });

  it("is not withdrawn by a condition that is no longer listed, only by one that is False", () => {
    const source = "node/PreemptionScheduled/e1";
    const live = departure({ ...toldByAgent, source, phase: "Draining" });
    expect(interruptionOf(live, node())).toBeUndefined();
    const otherType = node({ clearedConditions: ["VMEventScheduled"] });
    expect(interruptionOf(live, otherType)).toBeUndefined();
    const cleared = node({ clearedConditions: ["PreemptionScheduled"] });
    expect(interruptionOf(live, cleared)).toMatchObject({ event: "Withdrawn" });
  });

  it("is made again for the next shutdown of the same boot, if the last one was withdrawn", () => {
    const source = "node/Ready/shutdown-boot-1";
    const status = { phase: "Ended", reason: "NoticeWithdrawn", timeline: [] } as const;
    const ended = departure({ source, cause: "NodeShutdown", status });
    expect(orders(node(dying), [ended])).toHaveLength(1);
  });

  it("is withdrawn when only advice is left of the mark, which gets its own departure", () => {
    const source = "node/PreemptionScheduled/e1";
    const told = { source, cause: "SpotInterruption", noticedAt: nowAt } as const;
    const said = { type: "PreemptionScheduled", reason: "PreemptScheduled" };
    const message = "SpotRebalanceRecommendation Advisory: .";
    const onlyAdvised = node({ noticeConditions: [{ ...said, message }] });
    const live = departure({ ...told, phase: "Draining" });
    expect(interruptionOf(live, node(evicted))).toBeUndefined();
    expect(interruptionOf(live, onlyAdvised)).toMatchObject({ event: "Withdrawn" });
    expect(calls(onlyAdvised, [departure(told)])).toMatchObject([
      { kind: "Make", order: { cause: "RebalanceRecommendation" } },
    ]);
  });

  it.each([
    ["does not report", { isUnknown: true }],
    ["could not query", { message: "IMDS query failed, exit code: 28" }],
  ])("continues while the node %s whether the mark is still true", (_, fields) => {
    const source = "node/PreemptionScheduled/e1";
    const said = { type: "PreemptionScheduled", reason: "SpotEvictionIncoming", message: "" };
    const live = departure({ ...toldByAgent, source, phase: "Draining" });
    const unclear = node({ noticeConditions: [{ ...said, ...fields }] });
    expect(interruptionOf(live, unclear)).toBeUndefined();
    expect(calls(unclear)).toEqual([]);
    const cleared = node({ clearedConditions: ["PreemptionScheduled"] });
    expect(interruptionOf(live, cleared)).toMatchObject({ event: "Withdrawn" });
  });
});
