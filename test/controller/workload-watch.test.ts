import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Fleet, FleetView } from "../../src/contracts/cluster.ts";
import type { AuditTarget, WorkloadVerdict } from "../../src/contracts/workload-auditor.ts";
import { WorkloadWatch } from "../../src/controller/policy-checks.ts";
import type { NodeFacts } from "../../src/core/cluster/node.ts";
import type { Policy } from "../../src/core/policy/policy.ts";
import { type Millis, millis } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ManualClock, settle } from "../support/manual-clock.ts";

const minute = 60_000;
const hour = 60 * minute;

const policy = (name: string) => ({ name, weight: 0 }) as Policy;
const spotNode = { name: "n", labels: { "cloud.google.com/gke-spot": "true" } };

let clock: ManualClock;
let view: FleetView;
let listeners: (() => void)[];
let asked: { readonly atMs: number; readonly targets: readonly AuditTarget[] }[];
let answer: () => readonly WorkloadVerdict[];
let conditions: Map<string, string>;
let gauges: Map<string, unknown>;
let errors: string[];
let refusedFor: string | undefined;
let stop: AbortController;
let running: Promise<void>;

beforeEach(() => {
  clock = new ManualClock();
  view = fleetOf([spotNode], ["spot"]);
  listeners = [];
  asked = [];
  conditions = new Map();
  gauges = new Map();
  errors = [];
  refusedFor = undefined;
  stop = new AbortController();
  answer = () => [
    {
      policy: "spot",
      condition: { type: "SpotReady", status: "False", reason: "FindingsOpen", message: "bad." },
      findings: [{ rule: "grace-cut", severity: "error", count: 3 }],
      workloads: [{ platform: "gke", cut: 72, whole: 12 }],
    },
  ];
});

afterEach(async () => {
  stop.abort();
  await running;
});

function fleetOf(nodes: readonly object[], policies: readonly string[]): FleetView {
  const named = policies.map(policy);
  return { nodes: nodes as NodeFacts[], policies: named, badPolicies: [], departures: [] };
}

function change(to: FleetView): void {
  view = to;
  for (const listener of listeners) listener();
}

function start(everyMs: number): void {
  const fleet = {
    view: () => view,
    onChange: (listener: () => void) => {
      listeners.push(listener);
      return () => undefined;
    },
  } as Partial<Fleet> as Fleet;
  const watch = new WorkloadWatch({
    auditor: {
      judge: async (targets) => {
        asked.push({ atMs: clock.monotonic(), targets });
        return answer();
      },
    },
    everyMs: millis(everyMs) as Millis,
    fleet,
    policyStatus: {
      write: () => Promise.resolve(),
      unplanned: () => Promise.resolve(),
      add: async (name, condition) => {
        if (name === refusedFor) throw new LastcallError("API_REFUSED", "Cannot patch: refused");
        conditions.set(name, condition.message);
      },
    },
    clock,
    telemetry: {
      log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
      metrics: {
        count: (_, { code }) => errors.push(code ?? ""),
        set: (name, series) => gauges.set(name, series),
        observe: () => {},
      },
      events: { emit: () => {} },
    },
  });
  running = watch.run(stop.signal).catch(() => undefined);
}

const times = () => asked.map(({ atMs }) => atMs / minute);

describe("WorkloadWatch", () => {
  it("audits ten minutes after its start, and then at its interval", async () => {
    start(6 * hour);
    await clock.advance(13 * hour);

    expect(times()).toEqual([10, 370, 730]);
  });

  it("judges each policy against the nodes under it", async () => {
    view = fleetOf([spotNode, { name: "stable", labels: {} }], ["other", "spot"]);
    start(hour);
    await clock.advance(11 * minute);

    expect(asked[0]?.targets).toEqual([
      { policy: "other", nodes: [spotNode] },
      { policy: "spot", nodes: [] },
    ]);
  });

  it("exports the numbers per policy, and writes the summary as a condition", async () => {
    start(hour);
    await clock.advance(11 * minute);

    expect(gauges.get("lastcall_audit_findings")).toEqual([
      { labels: { policy: "spot", rule: "grace-cut", severity: "error" }, value: 3 },
    ]);
    expect(gauges.get("lastcall_audit_workloads")).toEqual([
      { labels: { policy: "spot", platform: "gke", grace: "Cut" }, value: 72 },
      { labels: { policy: "spot", platform: "gke", grace: "Whole" }, value: 12 },
    ]);
    expect(conditions).toEqual(new Map([["spot", "bad."]]));
  });

  it("writes the condition of each policy, even if that of another is refused", async () => {
    const [verdict] = answer() as readonly [WorkloadVerdict];
    answer = () => [{ ...verdict, policy: "first" }, verdict];
    refusedFor = "first";
    start(6 * hour);
    await clock.advance(10 * minute);

    expect(conditions.get("spot")).toBe("bad.");
    expect(errors).toEqual(["API_REFUSED"]);
  });

  it("counts an error, keeps its last gauges, and continues at its interval", async () => {
    start(hour);
    await clock.advance(11 * minute);
    answer = () => {
      throw new LastcallError("RIGHT_MISSING", "Cannot list jobs: forbidden, expected the right");
    };
    await clock.advance(hour);
    expect(errors).toEqual(["RIGHT_MISSING"]);
    expect(gauges.get("lastcall_audit_findings")).not.toEqual([]);

    await clock.advance(hour);
    expect(asked).toHaveLength(3);
  });

  it("retries after 15 minutes if the error is temporary", async () => {
    const verdicts = answer();
    answer = () => {
      throw new LastcallError("API_UNREACHABLE", "Cannot list jobs: no answer, expected one");
    };
    start(6 * hour);
    await clock.advance(30 * minute);
    answer = () => verdicts;
    await clock.advance(11 * hour);

    expect(times()).toEqual([10, 25, 40, 400]);
  });

  it("judges a new policy early, but no sooner than 15 minutes after the last audit", async () => {
    start(6 * hour);
    await clock.advance(11 * minute);
    change(fleetOf([spotNode], ["spot", "gpu"]));
    await clock.advance(13 * minute);
    expect(times()).toEqual([10]);

    await clock.advance(2 * minute);
    expect(times()).toEqual([10, 25]);
  });

  it("does not audit early when nodes come and go under the same policies", async () => {
    start(6 * hour);
    await clock.advance(hour);
    change(fleetOf([spotNode, { ...spotNode, name: "n2" }], ["spot"]));
    await clock.advance(hour);

    expect(times()).toEqual([10]);
  });

  it("clears its gauges when it stops, so a replica that loses the lead exports none", async () => {
    start(hour);
    await clock.advance(11 * minute);
    stop.abort();
    await settle();

    expect(gauges.get("lastcall_audit_findings")).toEqual([]);
    expect(gauges.get("lastcall_audit_workloads")).toEqual([]);
  });
});
