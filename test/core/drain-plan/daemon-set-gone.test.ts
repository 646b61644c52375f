import { expect, it } from "vitest";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import { planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import { plus, seconds } from "../../../src/core/time/time.ts";
import { node, pod, rule, startAt } from "../drain/drain-scene.ts";

const daemon = { group: "apps", kind: "DaemonSet", name: "logs", uid: "ds" };
const kruise = { ...daemon, group: "apps.kruise.io" };

function plan(pods: readonly PodFacts[], daemonSets: ReadonlySet<string> | undefined) {
  const question = { node: node(), pods, budgets: [], rule: rule(), now: startAt };
  return planDrain({ ...question, daemonSets });
}

/** What happens to a pod, in one word, and the reason. */
function fate(one: PodFacts, daemonSets: ReadonlySet<string> | undefined): string {
  const { pods, skipped } = plan([one], daemonSets);
  const [acting, left] = [pods[0], skipped[0]];
  return acting === undefined ? `Skip ${left?.reason}` : `${acting.action} ${acting.reason}`;
}

it.each<[string, readonly string[] | undefined, Partial<PodFacts>, string]>([
  ["is not known to be gone", undefined, {}, "Skip DaemonSet"],
  ["exists", ["default/logs"], {}, "Skip DaemonSet"],
  ["is gone", ["default/other"], {}, "Evict DaemonSetGone"],
  ["is gone, like all others", [], {}, "Evict DaemonSetGone"],
  ["is in another namespace", ["kube-system/logs"], {}, "Evict DaemonSetGone"],
  ["is of another API group, which is not listed", [], { controller: kruise }, "Skip DaemonSet"],
  ["is gone, and the pod has finished", [], { phase: "Failed" }, "Skip Finished"],
  [
    "is gone, and the pod is terminating",
    [],
    { deletionAt: plus(startAt, seconds(20)) },
    "Wait Terminating",
  ],
])("plans a pod whose DaemonSet %s", (_, names, changes, expected) => {
  const daemonSets = names && new Set(names);
  const one = pod("a", { controller: daemon, ...changes });
  expect(fate(one, daemonSets)).toBe(expected);
});

it("warns about a pod whose DaemonSet is gone, with the DaemonSet's name", () => {
  const pods = [pod("a", { controller: daemon })];
  const warning = { namespace: "default", name: "a", reason: "DaemonSetGone", detail: "logs" };
  expect(plan(pods, new Set()).warnings).toEqual([warning]);
});
