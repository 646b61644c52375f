/** What checkers must not excuse, and what they must: traces of a few events. */
import { describe, expect, it } from "vitest";
import { evictedFromCordoned, notDrainedInVain, oneActor } from "./checkers/act-checkers.ts";
import { actionsAreUndone } from "./checkers/action-checkers.ts";
import { cordonsEnd } from "./checkers/cordon-checkers.ts";
import { endedWithEvidence } from "./checkers/evidence-checkers.ts";
import { phasesEnd } from "./checkers/time-checkers.ts";
import {
  change,
  departure,
  hour,
  machine,
  minute,
  node,
  policy,
  policyIs,
  startBeside,
  verdictOf,
} from "./judged-trace.ts";
import type { TraceEvent } from "./trace.ts";
import { marks } from "./view.ts";

describe("cordons-end", () => {
  const cordoned = (...faults: readonly TraceEvent[]): readonly TraceEvent[] => [
    ...startBeside([], faults),
    change(4 * hour, "nodes", node("n1", "True", "d1"), node("n1", "True", "d1")),
  ];

  it("is broken by a node that is cordoned for two hours", () => {
    expect(verdictOf(cordonsEnd, cordoned())).toHaveLength(1);
  });

  it.each(["refuse-node", "right-removed patch nodes"])(
    "is not if nobody may free it: %s",
    (name) => {
      const kept = { kind: "Fault", what: "begins", index: 0, name } as const;
      expect(verdictOf(cordonsEnd, cordoned({ ...kept, at: 2 * hour - 1000 }))).toEqual([]);
    },
  );

  it("is broken if only the right to something else was removed", () => {
    const name = "right-removed create events";
    const removed = { kind: "Fault", what: "begins", index: 0, name } as const;
    expect(verdictOf(cordonsEnd, cordoned({ ...removed, at: 2 * hour - 1000 }))).toHaveLength(1);
  });
});

describe("one-actor", () => {
  /** At an hour another controller leads; a minute after that, a request of the first arrives. */
  const late = (sentAt: number, method: string, path: string): readonly TraceEvent[] => {
    const held = (at: number, holderIdentity: string): TraceEvent =>
      change(at, "leases.coordination.k8s.io", { metadata: {}, spec: { holderIdentity } });
    const request = { kind: "Request", process: "controller-0.1", method, path } as const;
    const answered = { body: undefined, status: 200, answer: "Arrived" } as const;
    const at = hour + minute;
    return [held(0, "controller-0.1"), held(hour, "controller-1.1")].concat({
      ...{ ...request, ...answered, sentAt, at },
    });
  };
  const pod = "/api/v1/namespaces/default/pods/p1";

  it.each([
    ["POST", `${pod}/eviction`],
    ["DELETE", pod],
  ])("is not broken by %s %s that was sent before another one led", (method, path) => {
    expect(verdictOf(oneActor, late(hour - 1, method, path))).toEqual([]);
    expect(verdictOf(oneActor, late(hour + 1, method, path))).toHaveLength(1);
  });

  it("is broken by a patch of a Node that arrives when another one leads", () => {
    expect(verdictOf(oneActor, late(hour - 1, "PATCH", "/api/v1/nodes/n1"))).toHaveLength(1);
  });
});

describe("not-drained-in-vain", () => {
  const at = 2 * hour;
  const status = { phase: "Ended", outcome: "RolledBack", reason: "MachineNotTaken" };
  /** The node is drained again 55 minutes after nobody took its machine. */
  const again = (
    between: readonly TraceEvent[] = [],
    endedAt = new Date(at).toISOString(),
  ): readonly TraceEvent[] => {
    const open = node("n1", "True");
    const pod = { metadata: { name: "p1", uid: "uid-p1" }, spec: { nodeName: "n1" } };
    const asked = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "now" } };
    return [
      policyIs(0, policy),
      ...[machine(0, "n1"), change(0, "nodes", open), change(0, "pods", pod)],
      change(at, "departures.lastcall.dev", departure()),
      change(
        at,
        "departures.lastcall.dev",
        departure({ status: { ...status, endedAt } }),
        departure(),
      ),
      ...between,
      change(at + 55 * minute, "departures.lastcall.dev", departure()),
      change(at + 55 * minute, "nodes", node("n1", "True", "d1"), open),
      change(at + 55 * minute, "pods", asked, pod),
    ];
  };

  it("is broken by a drain within an hour after nobody took the machine", () => {
    expect(verdictOf(notDrainedInVain, again())).toHaveLength(1);
  });

  it("is not if the roll-back had ended before it could be recorded", () => {
    const endedAt = new Date(at - hour).toISOString();
    expect(verdictOf(notDrainedInVain, again([], endedAt))).toEqual([]);
  });

  /** Two departures are rolled back while a pod is not to be disturbed, and it starts once more. */
  const thrice = (
    step: string,
    { cause = "Planned", reason = "DrainTimeout" } = {},
  ): readonly TraceEvent[] => {
    const annotations = { [marks.doNotDisturb]: "true" };
    const its = { node: { name: "n1", uid: "uid-n1" }, policy: "spot" };
    const spec = { nodeName: "n1" };
    const kept = { metadata: { name: "p1", uid: "uid-p1", annotations }, spec };
    const pod = { metadata: { name: "p2", uid: "uid-p2" }, spec };
    const asked = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: "now" } };
    const timeline = [{ step, result: "" }];
    const undone = { phase: "Ended", outcome: "RolledBack", reason, timeline };
    const rolledBack = (when: number) =>
      change(when, "departures.lastcall.dev", departure({ status: undone }), departure());
    return [
      ...[policyIs(0, policy), machine(0, "n1"), change(0, "nodes", node("n1", "True"))],
      ...[change(0, "pods", kept), change(0, "pods", pod)],
      ...[rolledBack(at), rolledBack(at + hour)],
      change(at + 2 * hour, "departures.lastcall.dev", departure({ spec: { ...its, cause } })),
      change(at + 2 * hour, "nodes", node("n1", "True", "d1"), node("n1", "True")),
      change(at + 2 * hour, "pods", asked, pod),
    ];
  };

  it("is broken by a third drain while the same pod blocks it", () => {
    expect(verdictOf(notDrainedInVain, thrice("Draining"))).toHaveLength(1);
  });

  it("is not if a person asks for it", () => {
    expect(verdictOf(notDrainedInVain, thrice("Draining", { cause: "Manual" }))).toEqual([]);
  });

  it("is not if a request that was refused has ended the drains before", () => {
    const trace = thrice("Draining", { reason: "RequestRefused" });
    expect(verdictOf(notDrainedInVain, trace)).toEqual([]);
  });

  it("is not by the first one after two starts that did not come to a drain", () => {
    expect(verdictOf(notDrainedInVain, thrice("Preparing"))).toEqual([]);
  });

  it("is not if the clock by which that hour is counted was set meanwhile", () => {
    const set = { kind: "Fault", what: "begins", index: 0, name: "server-clock-off" } as const;
    expect(verdictOf(notDrainedInVain, again([{ ...set, at: at + minute }]))).toEqual([]);
  });
});

describe("ended-with-evidence", () => {
  /** The notice for n1 counts as outlived, or withdrawn, so long after its machine has gone. */
  const outlived = (goneMs: number, reason = "NoticeOutlived"): readonly TraceEvent[] => {
    const at = 2 * hour;
    const noticed = { noticedAt: "then", cause: "SpotInterruption" };
    const spec = { node: { name: "n1", uid: "uid-n1" }, ...noticed };
    const status = { phase: "Ended", outcome: "Cancelled", reason };
    const gone = { name: "n1", id: "id-n1", bornAt: 0, because: "Preempted" };
    return [
      ...[policyIs(0, policy), machine(0, "n1"), change(0, "nodes", node("n1", "True"))],
      change(hour, "departures.lastcall.dev", departure({ spec })),
      { kind: "Machine", at: at - goneMs, what: "Gone", ...gone },
      change(at, "departures.lastcall.dev", departure({ spec, status }), departure({ spec })),
    ];
  };

  it("is broken by a machine that has gone, and counts as running", () => {
    expect(verdictOf(endedWithEvidence, outlived(minute))).toHaveLength(1);
  });

  it("is not if it has gone so shortly before that its Node is still Ready", () => {
    expect(verdictOf(endedWithEvidence, outlived(20_000))).toEqual([]);
  });

  it("is broken by a machine that has gone, and whose notice counts as withdrawn", () => {
    expect(verdictOf(endedWithEvidence, outlived(20_000, "NoticeWithdrawn"))).toHaveLength(1);
  });

  it("is not if it has gone while its agent told of the withdrawal", () => {
    expect(verdictOf(endedWithEvidence, outlived(1000, "NoticeWithdrawn"))).toEqual([]);
  });
});

describe("a preemption", () => {
  /** n1 has another boot ten seconds after the cloud withdrew its notice, and runs. */
  const preempted = (...faults: readonly TraceEvent[]): readonly TraceEvent[] => {
    const at = 2 * hour;
    const noticed = { noticedAt: "then", cause: "SpotInterruption" };
    const spec = { node: { name: "n1", uid: "uid-n1" }, ...noticed };
    const status = { phase: "Ended", outcome: "Preempted", reason: "MachineReplaced" };
    const says = (when: number, endsInMs: number | undefined): TraceEvent => {
      return { kind: "Notice", at: when, node: "n1", endsInMs };
    };
    return [
      ...[policyIs(0, policy), machine(0, "n1"), change(0, "nodes", node("n1", "True"))],
      change(at - minute, "departures.lastcall.dev", departure({ spec })),
      says(at - minute, 120_000),
      ...faults,
      says(at - 10_000, undefined),
      change(at, "departures.lastcall.dev", departure({ spec, status }), departure({ spec })),
    ];
  };

  it("is not said of a machine whose notice was withdrawn", () => {
    expect(verdictOf(endedWithEvidence, preempted())).toHaveLength(1);
  });

  it("may be said if its agent was rebooted with it, and could not tell", () => {
    const reboot = { kind: "Fault", what: "begins", index: 0, name: "reboot" } as const;
    const trace = preempted({ ...reboot, at: 2 * hour - 30_000 });
    expect(verdictOf(endedWithEvidence, trace)).toEqual([]);
  });
});

describe("actions-are-undone", () => {
  const left = (onTimeout: "Wait" | "RollBack"): readonly TraceEvent[] => {
    const status = { phase: "Draining" };
    const applied = { process: "controller-0.1", call: "apply", name: "mute", key: "k" } as const;
    return [
      policyIs(0, { ...policy, drain: { ...policy.drain, onTimeout } }),
      change(hour, "departures.lastcall.dev", departure({ status })),
      { kind: "Action", at: hour, departure: "d1", ...applied },
      { kind: "End", at: 2 * hour },
    ];
  };

  it("is broken by an action of a departure that has not ended", () => {
    expect(verdictOf(actionsAreUndone, left("RollBack"))).toHaveLength(1);
  });

  it("is not by one of a drain that its policy lets wait without end", () => {
    expect(verdictOf(actionsAreUndone, left("Wait"))).toEqual([]);
  });
});

describe("phases-end", () => {
  /** n1 drains for longer than its timeout, with a pod that was asked to leave before that. */
  const draining = (graceSeconds: number): readonly TraceEvent[] => {
    const spec = { nodeName: "n1", terminationGracePeriodSeconds: graceSeconds };
    const pod = { metadata: { name: "p1", uid: "uid-p1", deletionTimestamp: "then" }, spec };
    return [
      ...[policyIs(0, policy), machine(0, "n1"), change(0, "nodes", node("n1", "True"))],
      change(hour, "pods", pod),
      change(
        hour + minute,
        "departures.lastcall.dev",
        departure({ status: { phase: "Draining" } }),
      ),
      { kind: "Calm", at: 2 * hour },
    ];
  };

  it("is broken by a drain that does not end at its timeout", () => {
    expect(verdictOf(phasesEnd, draining(30))).toHaveLength(1);
  });

  it("is not by one whose pods were given their grace by the drain before it", () => {
    expect(verdictOf(phasesEnd, draining(7200))).toEqual([]);
  });
});

describe("evicted-from-cordoned", () => {
  /** Somebody has uncordoned n1, which leaves by d1, and a pod is evicted ten seconds later. */
  const evicted = (spec: object): readonly TraceEvent[] => {
    const [mine, at] = [node("n1", "True", "d1"), 2 * hour];
    const open = { ...mine, spec: {} };
    const of = { node: { name: "n1", uid: "uid-n1" }, policy: "spot", ...spec };
    const live = departure({ spec: of, status: { phase: "Draining" } });
    const pod = { metadata: { name: "p1", namespace: "default" }, spec: { nodeName: "n1" } };
    const path = "/api/v1/namespaces/default/pods/p1/eviction";
    return [
      ...[policyIs(0, policy), machine(0, "n1"), change(0, "nodes", mine)],
      ...[change(0, "departures.lastcall.dev", live), change(0, "pods", pod)],
      change(at, "nodes", open, mine),
      {
        ...{ kind: "Request", process: "controller-0.1", sentAt: at + 10_000, at: at + 10_000 },
        ...{ method: "POST", path, body: undefined, status: 201, answer: "Arrived" },
      },
    ];
  };

  it("is broken in a departure that somebody's uncordon has cancelled", () => {
    expect(verdictOf(evictedFromCordoned, evicted({ cause: "Planned" }))).toHaveLength(1);
  });

  it("is not under a notice: the cloud takes the machine, whoever has uncordoned the node", () => {
    expect(verdictOf(evictedFromCordoned, evicted({ cause: "SpotInterruption" }))).toEqual([]);
  });
});
