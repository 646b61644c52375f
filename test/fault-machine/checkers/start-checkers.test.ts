import { describe, expect, it } from "vitest";
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
} from "../judged-trace.ts";
import type { TraceEvent } from "../trace.ts";
import { marks } from "../view.ts";
import {
  startIsAllowed,
  startIsInBudget,
  startIsInTime,
  startsKeepPace,
  startWaitsForFleet,
} from "./start-checkers.ts";

describe("start-waits-for-fleet", () => {
  it("is broken by a start beside three nodes of four that are not ready", () => {
    expect(verdictOf(startWaitsForFleet, startBeside(["n2", "n3", "n4"]))).toHaveLength(1);
  });

  it("is not by one beside two of three, which no controller takes for an outage", () => {
    expect(verdictOf(startWaitsForFleet, startBeside(["n2", "n3"]))).toEqual([]);
  });
});

describe("starts-keep-pace", () => {
  /** n3 starts twenty seconds after n1. */
  const two = (...faults: readonly TraceEvent[]): readonly TraceEvent[] => {
    const at = 2 * hour + 20_000;
    const [open, marked] = [node("n3", "True"), node("n3", "True", "d3")];
    const spec = { node: { name: "n3", uid: "uid-n3" }, cause: "Planned", policy: "spot" };
    const metadata = { name: "d3", uid: "uid-d3" };
    const path = "/api/v1/nodes/n3";
    return [
      ...[machine(0, "n3"), change(0, "nodes", open), ...faults],
      ...startBeside([]),
      change(at, "departures.lastcall.dev", departure({ metadata, spec })),
      change(at, "nodes", marked, open),
      {
        ...{ kind: "Request", process: "controller-0.1", sentAt: at, at, method: "PATCH", path },
        ...{ body: undefined, status: 200, answer: "Arrived" },
      },
    ];
  };

  it("is broken by two starts within seconds", () => {
    expect(verdictOf(startsKeepPace, two())).toHaveLength(1);
  });

  it.each(["late-writes", "flaky"])(
    "is not if the first one's cordon came long after its record: %s",
    (name) => {
      const late = { kind: "Fault", what: "begins", index: 0, name } as const;
      expect(verdictOf(startsKeepPace, two({ ...late, at: 0 }))).toEqual([]);
    },
  );
});

describe("start-is-in-budget", () => {
  const started = (...edits: readonly TraceEvent[]) => startBeside(["n2"], edits);
  const short = { ...policy, lifetime: { max: "1h", reserve: "20m" } };

  it("is broken by a start beside a node that is out", () => {
    expect(verdictOf(startIsInBudget, started())).toHaveLength(1);
  });

  it.each([
    ["it leaves by a departure", { annotations: { [marks.departure]: "d2" } }, 1],
    ["it does not leave", {}, 0],
  ])("counts a node that was taken out of the policy only if %s", (_, metadata, broken) => {
    const its = { name: "n2", uid: "uid-n2", ...metadata };
    const out = { ...node("n2", "False"), metadata: its };
    expect(verdictOf(startIsInBudget, started(change(hour, "nodes", out)))).toHaveLength(broken);
  });

  it("is not by one that a policy allowed which was changed a moment ago", () => {
    const edits = [policyIs(2 * hour - 4000, short), policyIs(2 * hour - 1000, policy)];
    expect(verdictOf(startIsInBudget, started(...edits))).toEqual([]);
  });

  it("is by one that a policy allowed which was changed before", () => {
    const edits = [policyIs(2 * hour - 9000, short), policyIs(2 * hour - 6000, policy)];
    expect(verdictOf(startIsInBudget, started(...edits))).toHaveLength(1);
  });
});

describe("start-is-allowed", () => {
  /** Before its deadline, n1 starts at two hours, so long before a freeze ends. */
  const early = (seconds: number): readonly TraceEvent[] => {
    const end = new Date(2 * hour + seconds * 1000).toISOString();
    const frozen = { ...policy, gates: { freezeUntil: end } };
    return startBeside([], [policyIs(hour, frozen)]);
  };

  it("is broken by a start two seconds before the end of a freeze", () => {
    expect(verdictOf(startIsAllowed, early(2))).toHaveLength(1);
  });

  it("is not by one that is early by less than a second, as the server's time is known", () => {
    expect(verdictOf(startIsAllowed, early(0.9))).toEqual([]);
  });
  /** The policy is there from so many seconds before the start, and deleted a second before. */
  const deleted = (seconds: number): readonly TraceEvent[] => {
    const at = 2 * hour;
    const gone = { ...policyIs(at - 1000, policy), type: "DELETED" } as TraceEvent;
    const [, ...rest] = startBeside([]);
    const since = policyIs(at - seconds * 1000, policy);
    return [...[since, gone, ...rest].toSorted((a, b) => timeOf(a) - timeOf(b))];
  };
  const timeOf = (event: TraceEvent): number => ("at" in event ? event.at : 0);

  it("is not broken by a start by a policy that was created and deleted a moment ago", () => {
    expect(verdictOf(startIsAllowed, deleted(3))).toEqual([]);
  });
});

describe("start-is-in-time", () => {
  const lease = { metadata: { name: "lastcall" }, spec: { holderIdentity: "controller-0.1" } };
  /** A controller leads from then on; n1, whose deadline is at 40 minutes, starts at two hours. */
  const late = (ledAt: number): readonly TraceEvent[] => {
    const its = { ...policy, budgets: [], lifetime: { max: "1h", reserve: "20m" } };
    return [
      change(ledAt, "leases.coordination.k8s.io", lease),
      ...startBeside([], [policyIs(hour, its)]),
    ];
  };

  it("is broken by a start after a deadline that was known", () => {
    expect(verdictOf(startIsInTime, late(0))).toHaveLength(1);
  });

  it("is not if the deadline had passed before anybody planned", () => {
    expect(verdictOf(startIsInTime, late(40 * minute))).toEqual([]);
  });
});
