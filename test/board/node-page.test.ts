import { expect, it } from "vitest";
import { nodePage } from "../../src/board/node-page.ts";
import type { FleetView } from "../../src/contracts/cluster.ts";
import type { PodFacts } from "../../src/core/cluster/pod.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { instant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { budget } from "../core/drain/drain-scene.ts";

const now = instant(Date.UTC(2026, 10, 20));
const node = {
  ...{ name: "n1", uid: "uid-n1", labels: {}, annotations: {}, taints: [] },
  ...{ unschedulable: false, ready: true, createdAt: now },
};
const pod = {
  ...{ namespace: "shop", name: "web", uid: "uid-web", nodeName: "n1", phase: "Running" },
  ...{ ready: true, labels: {}, annotations: {}, priority: 0, graceSeconds: 60 },
  ...{ graceSource: "Set", mirror: false, emptyDir: false, hostPath: false },
  ...{ volumeClaims: [], tolerations: [], controller: { kind: "ReplicaSet", name: "r", uid: "r" } },
} as PodFacts;
const none = { namespace: "shop", selector: {}, disruptionsAllowed: 0, currentHealthy: 2 };
const departure: Departure = {
  ...{ name: "n1-1", uid: "uid-d", resourceVersion: "1", node: { name: "n1", uid: "uid-n1" } },
  ...{ cause: "SpotInterruption", hold: false, noticedAt: now },
  deadlineAt: plus(now, seconds(90)),
  status: {
    phase: "Draining",
    timeline: [{ at: now, step: "Draining", result: "Prepared" }],
    actions: [
      {
        ...{ name: "quarantine", kind: "replaceSecurityGroups", at: "AtNotice", state: "Done" },
        ...{ seconds: 1.2, attempts: 1, undo: { networkInterfaces: [] } },
      },
    ],
  },
} as Departure;

const viewOf = (departures: readonly Departure[]): FleetView => {
  return { nodes: [node], policies: [], badPolicies: [], departures };
};

it("has the plan of a planned drain and of each notice, with the grace that each leaves a pod", () => {
  const page = nodePage("n1", { view: viewOf([]), pods: [pod], budgets: [], now });
  expect(page?.drains.map(({ kind, plan }) => [kind, plan.pods[0]?.graceSeconds])).toEqual([
    ["Planned", 60],
    ["Notice", 60],
    ["Notice", 30],
  ]);
});

it("has the running notice first, with the time left", () => {
  const at = plus(now, seconds(50));
  const page = nodePage("n1", { view: viewOf([departure]), pods: [pod], budgets: [], now: at });
  expect(page?.drains[0]).toMatchObject({ kind: "Running", plan: { noticeSeconds: 40 } });
  expect(page?.departures[0]).toMatchObject({ isLive: true, steps: [{ step: "Draining" }] });
});

it.each([
  [0, 43],
  [20, 23],
  [50, 0],
])("has, %d s after the notice, the rest of its budget's share: %d s", (after, forceAtSeconds) => {
  const at = plus(now, seconds(after));
  const facts = { view: viewOf([departure]), pods: [pod], budgets: [budget("web", none)] };
  const page = nodePage("n1", { ...facts, now: at });
  expect(page?.drains[0]).toMatchObject({ kind: "Running", plan: { pods: [{ forceAtSeconds }] } });
});

it("gives a drain that began after its deadline the time that it has", () => {
  const late: Departure = { ...departure, deadlineAt: plus(now, seconds(-5)) };
  const at = plus(now, seconds(10));
  const page = nodePage("n1", { view: viewOf([late]), pods: [pod], budgets: [], now: at });
  const pods = [{ graceSeconds: 20 }];
  expect(page?.drains[0]).toMatchObject({ kind: "Running", plan: { noticeSeconds: 20, pods } });
});

it("does not take a person's deadline for the cloud's", () => {
  const asked: Departure = { ...departure, cause: "Manual" };
  const page = nodePage("n1", { view: viewOf([asked]), pods: [pod], budgets: [], now });
  expect(page?.drains.map(({ kind }) => kind)).toEqual(["Planned", "Notice", "Notice"]);
});

it("shows the actions of a departure, but not their undo records", () => {
  const page = nodePage("n1", { view: viewOf([departure]), pods: [], budgets: [], now });
  const [action] = page?.departures[0]?.actions ?? [];
  expect(action).toMatchObject({ name: "quarantine", state: "Done", seconds: 1.2 });
  expect(action).not.toHaveProperty("undo");
});

it("says why there is no plan if the pods may not be listed", () => {
  const page = nodePage("n1", { view: viewOf([]), problem: "pods is forbidden", now });
  expect(page).toMatchObject({ drains: [], problem: "pods is forbidden" });
});

it("shows a node that is gone by its departures, and no unknown node", () => {
  const view = { ...viewOf([departure]), nodes: [] };
  expect(nodePage("n1", { view, now: plus(now, minutes(9)) })?.drains).toEqual([]);
  expect(nodePage("n2", { view, now })).toBeUndefined();
});

it("has the departures of its own machine, not those of an earlier one with its name", () => {
  const earlier: Departure = { ...departure, uid: "d-0", node: { name: "n1", uid: "uid-old" } };
  const told = (departures: readonly Departure[]) => {
    const page = nodePage("n1", { view: viewOf(departures), pods: [], budgets: [], now });
    return [page?.departures, page?.earlier].map((of) => of?.map(({ uid }) => uid));
  };
  expect(told([earlier, departure])).toEqual([["uid-d"], ["d-0"]]);
  expect(told([earlier])).toEqual([[], ["d-0"]]);
});
