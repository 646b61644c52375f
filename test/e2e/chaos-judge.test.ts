import { describe, expect, it } from "vitest";
import type { AuditEntry } from "../support/audit-log.ts";
import { type Asked, cordonTimes, judgeChaos } from "./chaos-judge.ts";
import type { Change, History } from "./history.ts";

const user = "system:serviceaccount:lastcall:lastcall";
const noticedAtMs = 1_000_000;
const notice: Asked = { departure: "n1-a", node: "n1", kind: "Notice", atMs: noticedAtMs };
const rotation: Asked = { departure: "n2-b", node: "n2", kind: "Rotation", atMs: noticedAtMs };

function entry(afterMs: number, about: Partial<AuditEntry>): AuditEntry {
  const atUs = (noticedAtMs + afterMs) * 1000;
  return {
    ...{ verb: "patch", resource: "nodes", subresource: "", namespace: "", name: "n1", user },
    ...{ code: 200, receivedAtUs: atUs, answeredAtUs: atUs },
    ...about,
  };
}

function deletion(afterMs: number): AuditEntry {
  const about = { verb: "delete", resource: "pods", namespace: "default", name: "web-1" };
  return entry(afterMs, about);
}

function podOn(nodeName: string): Change {
  const metadata = { name: "web-1", namespace: "default", uid: "p1" };
  return { kind: "Pod", type: "Set", order: 2, object: { metadata, spec: { nodeName } as never } };
}

function historyOf(more: Partial<History>): History {
  return {
    changes: [],
    audit: [entry(400, {})],
    releases: [{ machine: "n1", at: 0, podsThen: [] }],
    machineEnds: [{ machine: "n1", at: 0 }],
    ...more,
  };
}

const charge = { asked: [notice], user };

describe("judgeChaos", () => {
  it("finds nothing in a correct history, and measures each notice's time to the cordon", () => {
    const history = historyOf({});
    expect(judgeChaos(history, charge)).toEqual([]);
    expect(cordonTimes(history, charge)).toEqual([400]);
  });

  it("finds a notice without a cordon within five seconds", () => {
    expect(judgeChaos(historyOf({ audit: [entry(5_200, {})] }), charge)).toEqual([
      "n1 was cordoned 5200 ms after its notice n1-a",
    ]);
    expect(judgeChaos(historyOf({ audit: [entry(-100, {})] }), charge)).toEqual([
      "n1 was never cordoned for n1-a",
    ]);
  });

  it("finds a pod that was deleted before the budgets had their share of the notice", () => {
    const changes = [podOn("n1")];
    const early = historyOf({ changes, audit: [entry(400, {}), deletion(6_000)] });
    expect(judgeChaos(early, charge)).toEqual(["web-1 of n1 was deleted 6000 ms after the notice"]);
    const late = historyOf({ changes, audit: [entry(400, {}), deletion(13_000)] });
    expect(judgeChaos(late, charge)).toEqual([]);
  });

  it("finds any pod that was deleted in a rotation", () => {
    const history = historyOf({
      changes: [podOn("n2")],
      audit: [deletion(60_000)],
      machineEnds: [{ machine: "n2", at: 0 }],
    });
    expect(judgeChaos(history, { asked: [rotation], user })).toEqual([
      "web-1 of n2 was deleted without a notice",
    ]);
  });

  it("finds a machine that ended twice, not at all, or without a departure", () => {
    const ends = (...machines: readonly string[]) =>
      historyOf({ machineEnds: machines.map((machine) => ({ machine, at: 0 })) });
    expect(judgeChaos(ends("n1", "n1"), charge)).toEqual(["n1 lost 2 machines, expected 1"]);
    expect(judgeChaos(ends(), charge)).toEqual(["n1 lost 0 machines, expected 1"]);
    expect(judgeChaos(ends("n1", "n9"), charge)).toEqual(["n9 lost 1 machines, expected 0"]);
  });

  it("finds a failed departure, and a node that was left cordoned", () => {
    const status = { phase: "Ended", outcome: "Failed", reason: "ReleaseFailed" };
    const departure = { metadata: { name: "n1-a", uid: "d1" }, status };
    const node = { metadata: { name: "n3", uid: "u3" }, spec: { unschedulable: true } };
    const changes: Change[] = [
      { kind: "Departure", type: "Set", order: 3, object: departure },
      { kind: "Node", type: "Set", order: 4, object: node },
    ];
    expect(judgeChaos(historyOf({ changes }), charge)).toEqual([
      "n1-a ended as Failed, because of ReleaseFailed",
      "n3 was left with a cordon",
    ]);
  });

  describe("amid a fault that lasts a minute", () => {
    const lasting = [
      { kind: "Outage", fromMs: noticedAtMs - 60_000, toMs: noticedAtMs + 3_000 },
    ] as const;

    it("counts the time to the cordon from the end of the fault", () => {
      const at = (afterMs: number) =>
        judgeChaos(historyOf({ audit: [entry(afterMs, {})] }), { ...charge, lasting });
      expect(at(7_900)).toEqual([]);
      expect(at(8_100)).toEqual(["n1 was cordoned 5100 ms after its notice n1-a"]);
    });

    it.each([
      ["in it", 0, true],
      ["shortly after it", 20, true],
      ["minutes after it", 200, false],
    ])("lets a rotation be given up %s, and then expects its machine", (_, seconds, isRight) => {
      const endedAt = new Date(noticedAtMs + seconds * 1000).toISOString();
      const status = { phase: "Ended", outcome: "RolledBack", reason: "RequestRefused", endedAt };
      const object = { metadata: { name: "n2-b", uid: "d2" }, status };
      const changes: Change[] = [{ kind: "Departure", type: "Set", order: 3, object }];
      const history = historyOf({ changes, machineEnds: [] });
      const found = judgeChaos(history, { asked: [rotation], user, lasting });
      expect(found.length === 0).toBe(isRight);
      const gone = { ...history, machineEnds: [{ machine: "n2", at: 0 }] };
      if (isRight) {
        expect(judgeChaos(gone, { asked: [rotation], user, lasting })).toEqual([
          "n2 lost 1 machines, expected 0",
        ]);
      }
    });
  });
});
