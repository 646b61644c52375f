import { describe, expect, it } from "vitest";
import type { KubeAnswer } from "../../../src/contracts/kube-api.ts";
import {
  budgets,
  field,
  makeRun,
  metadataOf,
  mustBe,
  mustRefuse,
  pod,
  pods,
  type TargetOf,
  until,
} from "./dialog.ts";
import { expectDeclared } from "./patch.ts";

const nodeName = "eviction-node";
const otherUid = "11111111-2222-4333-8444-555555555555";

export function evictionSentences(target: TargetOf): void {
  describe("evictions", () => {
    const ours = pods(target);

    function evict(name: string, deleteOptions?: object): Promise<KubeAnswer> {
      const metadata = { name, namespace: target().namespace };
      const body = { apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions };
      return ours.post(`${name}/eviction`, body);
    }

    /**
     * Running pods of one app, and a budget over them with the status that a controller would
     * write.
     */
    async function guarded(app: string, options: Guarded): Promise<string[]> {
      const { count, notReady = 0 } = options;
      const names = Array.from({ length: count }, (_, index) => `${app}-${index}`);
      for (const [index, name] of names.entries()) {
        await ours.mustCreate(pod(name, { nodeName, labels: { app }, graceSeconds: 600 }));
        await makeRun(ours, name, index < notReady ? "NotReady" : "Ready");
      }
      await setBudget(app, { ...options, healthy: count - notReady });
      return names;
    }

    async function setBudget(app: string, options: Guarded & { healthy: number }): Promise<void> {
      const { minAvailable, count, healthy, policy } = options;
      const spec = {
        minAvailable,
        selector: { matchLabels: { app } },
        ...(policy === undefined ? {} : { unhealthyPodEvictionPolicy: policy }),
      };
      const made = await budgets(target).mustCreate({ metadata: { name: app }, spec });
      const status = {
        observedGeneration: metadataOf(made).generation,
        expectedPods: count,
        currentHealthy: healthy,
        desiredHealthy: minAvailable,
        disruptionsAllowed: Math.max(0, healthy - minAvailable),
      };
      mustBe(200, await budgets(target).merge(`${app}/status`, { status }));
      await until({
        what: `the budget ${app} stands`,
        isMet: async () => {
          const budget = await budgets(target).mustGet(app);
          return field(budget, "status.disruptionsAllowed") === status.disruptionsAllowed;
        },
      });
    }

    it("evicts a pod without a budget: 201, a deadline, and the reason on the pod", async () => {
      await ours.mustCreate(pod("free", { nodeName, graceSeconds: 600 }));
      await makeRun(ours, "free");
      const answer = await evict("free");
      expect(answer).toMatchObject({
        status: 201,
        body: { kind: "Status", status: "Success" },
      });
      const going = await ours.mustGet("free");
      expect(metadataOf(going).deletionGracePeriodSeconds).toBe(600);
      const conditions = field(going, "status.conditions") as object[];
      expect(conditions).toContainEqual(
        expect.objectContaining({
          type: "DisruptionTarget",
          status: "True",
          reason: "EvictionByEvictionAPI",
        }),
      );
    });

    it("gives an evicted pod the grace period of the eviction", async () => {
      await ours.mustCreate(pod("hurried", { nodeName, graceSeconds: 600 }));
      await makeRun(ours, "hurried");
      mustBe(201, await evict("hurried", { gracePeriodSeconds: 120 }));
      const going = await ours.mustGet("hurried");
      expect(metadataOf(going).deletionGracePeriodSeconds).toBe(120);
    });

    it("returns NotFound for a pod that does not exist", async () => {
      mustRefuse(await evict("never-was"), { status: 404, reason: "NotFound" });
    });

    it("rejects an Eviction with another name", async () => {
      await ours.mustCreate(pod("misnamed", { nodeName }));
      const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "other" } };
      mustRefuse(await ours.post("misnamed/eviction", body), {
        status: 400,
        reason: "BadRequest",
      });
    });

    it("rejects the eviction of a pod with another uid with Conflict", async () => {
      await ours.mustCreate(pod("replaced", { nodeName }));
      await makeRun(ours, "replaced");
      mustRefuse(await evict("replaced", { preconditions: { uid: otherUid } }), {
        status: 409,
        reason: "Conflict",
      });
      expect(metadataOf(await ours.mustGet("replaced")).deletionTimestamp).toBeUndefined();
    });

    it("rejects beyond the budget: 429 with the budget's name, and no Retry-After", async () => {
      const [name = ""] = await guarded("spent", { count: 2, minAvailable: 2 });
      const answer = await evict(name);
      const status = mustRefuse(answer, { status: 429, reason: "TooManyRequests" });
      expect(field(status, "details.causes.0")).toEqual({
        reason: "DisruptionBudget",
        message: "The disruption budget spent needs 2 healthy pods and has 2 currently",
      });
      expect(answer.retryAfterSeconds).toBeUndefined();
    });

    it("counts each eviction against the budget at once", async () => {
      const [first = "", second = ""] = await guarded("counted", { count: 3, minAvailable: 2 });
      mustBe(201, await evict(first));
      mustRefuse(await evict(second), { status: 429, reason: "TooManyRequests" });
    });

    it("checks the budget in a dry run, but does not count against it", async () => {
      const [first = "", second = ""] = await guarded("tried", { count: 3, minAvailable: 2 });
      mustBe(201, await evict(first, { dryRun: ["All"] }));
      mustBe(201, await evict(second, { dryRun: ["All"] }));
      expect(metadataOf(await ours.mustGet(first)).deletionTimestamp).toBeUndefined();
      expect(field(await budgets(target).mustGet("tried"), "status.disruptionsAllowed")).toBe(1);
    });

    it("evicts a terminating pod past its budget, which only shortens its grace", async () => {
      const [first = ""] = await guarded("again", { count: 2, minAvailable: 1 });
      mustBe(201, await evict(first));
      mustBe(201, await evict(first, { gracePeriodSeconds: 60 }));
      expect(metadataOf(await ours.mustGet(first)).deletionGracePeriodSeconds).toBe(60);
    });

    it("evicts a pod that is not running yet past its budget", async () => {
      await guarded("starting", { count: 1, minAvailable: 1 });
      const labels = { app: "starting" };
      await ours.mustCreate(pod("starting-late", { nodeName, labels, graceSeconds: 600 }));
      mustBe(201, await evict("starting-late"));
    });

    it.each([
      ["enough others are healthy", undefined, 3, 201],
      ["too few are healthy", undefined, 1, 429],
      ["too few are healthy, but its policy ignores that", "AlwaysAllow", 1, 201],
    ] as const)(
      "decides on a pod that is not ready if %s",
      async (_what, policy, healthy, status) => {
        const app = `unready-${policy ?? "default"}-${healthy}`.toLowerCase();
        const count = healthy + 1;
        const [sick = ""] = await guarded(app, { count, notReady: 1, minAvailable: 2, policy });
        expect((await evict(sick)).status).toBe(status);
      },
    );

    it("fails for a pod with two budgets, with a Status of code 500", async () => {
      const [name = ""] = await guarded("two", { count: 2, minAvailable: 1 });
      const spec = { minAvailable: 0, selector: { matchLabels: { app: "two" } } };
      await budgets(target).mustCreate({ metadata: { name: "two-more" }, spec });
      const answer = await evict(name);
      // Sources disagree on whether the HTTP code is 201 or 500, so clients read the body.
      expect([201, 500]).toContain(answer.status);
      expect(answer.body).toMatchObject({ status: "Failure", code: 500 });
      expect(field(answer.body, "message")).toContain("more than one PodDisruptionBudget");
      expect(metadataOf(await ours.mustGet(name)).deletionTimestamp).toBeUndefined();
    });

    it("asks for a retry if the budget has not been observed yet", async () => {
      const gap = target().gaps.UnobservedBudget;
      if (gap !== undefined) return expectDeclared(gap);
      const [name = ""] = await guarded("unseen", { count: 2, minAvailable: 0 });
      mustBe(200, await budgets(target).merge("unseen", { spec: { minAvailable: 1 } }));
      const answer = await evict(name);
      const status = mustRefuse(answer, { status: 429, reason: "TooManyRequests" });
      expect(field(status, "details.causes.0")).toEqual({
        reason: "DisruptionBudget",
        message: "The disruption budget unseen is still being processed by the server.",
      });
      expect(answer.retryAfterSeconds).toBe(10);
    });
  });
}

interface Guarded {
  readonly count: number;
  readonly minAvailable: number;
  /** How many of the pods are not ready; the first ones. */
  readonly notReady?: number;
  readonly policy?: string | undefined;
}
