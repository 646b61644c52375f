import { describe, expect, it } from "vitest";
import type { AuditEntry } from "../support/audit-log.ts";
import type { Change, History } from "./history.ts";
import { brokenRules, type Observed } from "./observed-trace.ts";

const user = "system:serviceaccount:lastcall:lastcall";
const observed: Observed = {
  user,
  policy: { drain: { onTimeout: "RollBack" }, instance: { release: "Recreate" } },
};
const beganMs = Date.UTC(2026, 10, 20);

interface NodeState {
  readonly mark?: string;
  readonly cordoned?: boolean;
  readonly uid?: string;
}

/** The state of the node n1 at a second; the order of changes is that of time. */
function node(second: number, { mark, cordoned, uid = "u1" }: NodeState): Change {
  const annotations = mark === undefined ? {} : { "lastcall.dev/departure": mark };
  const conditions = [{ type: "Ready", status: "True" }];
  const object = {
    metadata: { name: "n1", uid, annotations },
    spec: cordoned === true ? { unschedulable: true } : {},
    status: { conditions },
  };
  return { kind: "Node", type: "Set", ...placed(second), object: object as never };
}

function departure(second: number, status: object = {}): Change {
  const spec = { node: { name: "n1", uid: "u1" }, cause: "Planned" };
  const object = { metadata: { name: "n1-d", uid: "d1" }, spec, status };
  return { kind: "Departure", type: "Set", ...placed(second), object };
}

function pod(second: number, more: { leaving?: boolean; annotations?: object } = {}): Change {
  const { leaving = false, annotations = {} } = more;
  const deletionTimestamp = leaving ? { deletionTimestamp: "2026-11-20T00:00:00Z" } : {};
  const metadata = { name: "web", namespace: "default", uid: "p1", annotations };
  const spec = { nodeName: "n1", terminationGracePeriodSeconds: 30 };
  const object = {
    metadata: { ...metadata, ...deletionTimestamp },
    ...{ spec, status: { phase: "Running" } },
  };
  return { kind: "Pod", type: "Set", ...placed(second), object: object as never };
}

function podGone(second: number): Change {
  return { ...pod(second, { leaving: true }), type: "Gone" } as Change;
}

function placed(second: number) {
  return { order: 1000 + second, atMs: beganMs + second * 1000 };
}

/** Just before the change of the same second was seen. */
function eviction(second: number): AuditEntry {
  const us = (beganMs + second * 1000 - 20) * 1000;
  return {
    ...{ verb: "create", resource: "pods", subresource: "eviction", namespace: "default" },
    ...{ name: "web", user, code: 201, receivedAtUs: us, answeredAtUs: us + 10_000 },
  };
}

function machine(second: number) {
  return { machine: "n1", id: "m1", at: beganMs + second * 1000, order: 1000 + second };
}

/** A node that leaves as it should: marked, drained, released, gone, and said so. */
const left = {
  changes: [
    ...[node(0, {}), pod(1), departure(2), node(3, { mark: "n1-d", cordoned: true })],
    departure(4, { phase: "Draining", machine: { id: "m1" } }),
    ...[pod(10, { leaving: true }), podGone(20)],
    departure(40, { phase: "Ended", outcome: "Planned", machine: { id: "m1" } }),
  ],
  audit: [eviction(10)],
  releases: [{ ...machine(25), podsThen: [] }],
  machineEnds: [machine(30)],
  machineStarts: [machine(0)],
} as const satisfies History;

function without(changes: readonly Change[], seconds: readonly number[]): readonly Change[] {
  return changes.filter(({ order }) => !seconds.includes(order - 1000));
}

describe("the fault machine's rules, asked of what was seen on a real control plane", () => {
  it("find nothing in a departure as it should be", () => {
    expect(brokenRules(left, observed)).toEqual([]);
  });

  it("say nothing about a controller that has written nothing", () => {
    const judgeNothing = () => brokenRules({ ...left, audit: [] }, observed);
    expect(judgeNothing).toThrow(`${user} has written nothing`);
  });

  it("find nothing if no change was seen between a release and the end of its machine", () => {
    const changes = [...without(left.changes, [20, 40]), node(50, {})];
    const release = { ...left.releases[0], order: 1040 };
    const audit = [eviction(10)];
    const podsLeft = changes.filter(({ kind }) => kind !== "Pod");
    expect(
      brokenRules({ ...left, changes: podsLeft, audit, releases: [release] }, observed),
    ).toEqual([]);
  });

  it("find nothing in a request that is repeated when the next machine has the name", () => {
    const next = { id: "m2", at: beganMs + 31_000 };
    const history = {
      ...left,
      changes: [...left.changes.slice(0, -1), node(35, {}), ...left.changes.slice(-1)],
      releases: [...left.releases, { ...left.releases[0], ...next, order: 1031 }],
      machineStarts: [...left.machineStarts, { machine: "n1", ...next }],
    };
    expect(brokenRules(history, observed)).toEqual([]);
  });

  const { changes } = left;
  it.each<[string, Partial<History>, string]>([
    [
      "an eviction from a node that is not cordoned",
      { changes: without(changes, [3]) },
      "evicted-from-cordoned: web was evicted from n1, which is not cordoned",
    ],
    [
      "an eviction of a pod that is not to be disturbed",
      {
        changes: changes.map((one) =>
          one.kind === "Pod" && one.type === "Set"
            ? pod(one.order - 1000, {
                leaving: one.order === 1010,
                annotations: { "lastcall.dev/do-not-disturb": "true" },
              })
            : one,
        ),
      },
      "undisturbed-stays: web is not to be disturbed, and was evicted from n1",
    ],
    [
      "a release of a machine with a pod on it",
      { changes: without(changes, [10, 20]), audit: [{ ...eviction(10), code: 403 }] },
      "released-when-empty: n1 was released with web on it, which was never asked to leave",
    ],
    [
      "the release of another machine",
      { changes: changes.map((one) => (one.order === 1004 ? departure(4) : one)) },
      "released-right-machine: machine n1 (m1) was released, and no live Departure names it",
    ],
    [
      "a mark on another node of the same name",
      { changes: [...changes, node(50, { mark: "n1-d", cordoned: true, uid: "u2" })] },
      "acts-on-own-node: n1 (u2) was marked for n1-d, which is about u1",
    ],
    [
      "a node that is opened while its machine is deleted",
      { changes: [...changes.slice(0, 7), node(27, {}), ...changes.slice(7)] },
      "dying-stays-cordoned: n1 was uncordoned while its machine is deleted",
    ],
    [
      "an end that is said of a machine that runs",
      { releases: [], machineEnds: [] },
      "ended-with-evidence: n1 ended as Planned, and its machine runs",
    ],
    [
      "somebody's cordon that is taken back",
      {
        changes: [
          ...[node(0, {}), node(1, { cordoned: true }), departure(2)],
          ...[node(3, { mark: "n1-d", cordoned: true }), node(8, {})],
        ],
        ...{ audit: [eviction(10)], releases: [], machineEnds: [] },
      },
      "others-cordon-stays: n1 was cordoned by somebody else, and was uncordoned with the end of its departure",
    ],
    [
      "a mark that stays for five minutes after its departure",
      {
        changes: [
          ...[node(0, {}), departure(2), node(3, { mark: "n1-d", cordoned: true })],
          ...[4, 400].map((at) => departure(at, { phase: "Ended", outcome: "Cancelled" })),
        ],
        ...{ audit: [eviction(10)], releases: [], machineEnds: [] },
      },
      "mark-has-departure: n1 carries the mark of a departure that is not live",
    ],
  ])("find %s", (_, more, broken) => {
    expect(brokenRules({ ...left, ...more }, observed)).toContain(broken);
  });
});
