import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import { drainReasons } from "../../../src/core/departure/drain-reason.ts";
import { type DrainQuestion, planDrain } from "../../../src/core/drain-plan/drain-plan.ts";
import { drainPlanReport, explainDrain } from "../../../src/core/drain-plan/drain-plan-report.ts";
import { plus, seconds } from "../../../src/core/time/time.ts";
import { budget, node, pod, rule, startAt } from "../drain/drain-scene.ts";

function report(pods: readonly PodFacts[], changes: Partial<DrainQuestion> = {}) {
  return drainPlanReport(
    planDrain({ node: node(), pods, budgets: [], rule: rule(), now: startAt, ...changes }),
  );
}

it("the report under a notice has the documented shape", () => {
  const daemon = pod("kube-proxy-x", {
    namespace: "kube-system",
    controller: { kind: "DaemonSet", name: "kube-proxy", uid: "ds" },
  });
  const web = pod("web-0", { graceSeconds: 60 });
  const budgets = [budget("web")];
  expect(report([web, daemon], { budgets, deadlineAt: plus(startAt, seconds(120)) })).toEqual({
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "DrainPlan",
    node: "n1",
    noticeSeconds: 120,
    pods: [
      {
        namespace: "default",
        name: "web-0",
        uid: "uid-web-0",
        action: "Evict",
        tier: 0,
        startSeconds: 0,
        wantedGraceSeconds: 60,
        graceSeconds: 60,
        cut: false,
        forceAtSeconds: 58,
        budget: "default/web",
        reason: "Evictable",
        explain: "is evicted with 60 s of grace",
      },
    ],
    skipped: [
      {
        ...{ namespace: "kube-system", name: "kube-proxy-x", reason: "DaemonSet" },
        explain: "is skipped, because its DaemonSet would recreate it on the node at once",
      },
    ],
    blocked: [],
    warnings: [],
  });
});

it("the report names no forced deletion of a pod that no budget selects", () => {
  const [web, bare] = [pod("web-0"), pod("other", { labels: { app: "other" } })];
  const budgets = [budget("web")];
  const { pods } = report([web, bare], { budgets, deadlineAt: plus(startAt, seconds(120)) });
  const told = pods.map(({ name, budget: by, forceAtSeconds }) => [name, by, forceAtSeconds]);
  expect(Object.fromEntries(told.map(([name, ...rest]) => [name, rest]))).toEqual({
    "web-0": ["default/web", 88],
    other: [null, null],
  });
});

it("the report names no forced deletion of a pod that its budget cannot hold", () => {
  const [removed, leaving, held] = [
    pod("removed", { labels: { app: "web", tier: "cache" } }),
    pod("leaving", { deletionAt: plus(startAt, seconds(20)) }),
    pod("held"),
  ];
  const { pods } = report([removed, leaving, held], {
    budgets: [budget("web", { disruptionsAllowed: 0, currentHealthy: 2 })],
    rule: rule({
      podRules: [{ selector: { matchLabels: { tier: "cache" } }, action: "Delete" }],
    }),
    deadlineAt: plus(startAt, seconds(120)),
  });
  expect(Object.fromEntries(pods.map((one) => [one.name, one.forceAtSeconds]))).toEqual({
    removed: null,
    leaving: null,
    held: 88,
  });
});

it("the report of a planned drain has null for the notice and for every forced deletion", () => {
  const planned = report([pod("a", { emptyDir: true })]);
  expect(planned.noticeSeconds).toBeNull();
  expect(planned.pods).toMatchObject([{ forceAtSeconds: null, budget: null, cut: false }]);
  expect(planned.warnings).toEqual([
    {
      namespace: "default",
      name: "a",
      reason: "EmptyDir",
      explain: "is evicted and loses the data of its emptyDir",
    },
  ]);
});

it("a blocked pod is in pods as Block, and in blocked with one sentence", () => {
  const annotations = { "lastcall.dev/do-not-disturb": "true" };
  const planned = report([pod("a", { annotations })]);
  expect(planned.pods).toMatchObject([{ action: "Block" }]);
  expect(planned.blocked).toEqual([
    {
      namespace: "default",
      name: "a",
      reason: "DoNotDisturb",
      explain: 'is not evicted, because it has lastcall.dev/do-not-disturb: "true"',
    },
  ]);
});

it("a pod that is both held and cut is explained in one sentence", () => {
  const alone = budget("web", { disruptionsAllowed: 0, currentHealthy: 2 });
  const short = report([pod("a", { graceSeconds: 60 })], {
    budgets: [alone],
    deadlineAt: plus(startAt, seconds(30)),
  });
  expect(short.pods[0]?.explain).toBe(
    "cannot be evicted now, because its budget allows no disruption: default/web needs 2 healthy " +
      "and has 2; it is deleted after 13 s, with its grace period truncated from 60 s to 17 s, if " +
      "it is still blocked; grace period truncated from 60 s to 30 s",
  );
});

it.each(drainReasons)("the reason %s has a sentence and a line in docs/drain.md", (reason) => {
  const sentence = explainDrain(reason, { detail: "x", graceSeconds: 1, wantedGraceSeconds: 2 });
  expect(sentence).toMatch(/^[a-z].*[^.]$/);
  expect(sentence).not.toContain("undefined");
  const docs = readFileSync(new URL("../../../docs/drain.md", import.meta.url), "utf8");
  expect(docs).toContain(`| \`${reason}\` |`);
});
