import { describe, expect, it } from "vitest";
import {
  budgets,
  Dialog,
  field,
  makeRun,
  mustRefuse,
  pod,
  pods,
  type TargetOf,
  until,
} from "./dialog.ts";

const nodeName = "disruption-node";

/**
 * What the disruption controller writes about budgets whose pods have no number of replicas.
 * Source: kubernetes `pkg/controller/disruption/disruption.go`, getExpectedScale and failSafe.
 */
export function disruptionSentences(target: TargetOf): void {
  describe("a budget over pods without a number of replicas", () => {
    const ours = pods(target);
    const jobs = new Dialog(
      target,
      ({ namespace }) => `/apis/batch/v1/namespaces/${namespace}/jobs`,
    );
    const sets = new Dialog(
      target,
      ({ namespace }) => `/apis/apps/v1/namespaces/${namespace}/replicasets`,
    );

    const templateOf = (app: string): object => ({
      metadata: { labels: { app } },
      spec: {
        schedulerName: "nobody",
        restartPolicy: "Never",
        containers: [{ name: "main", image: "registry.k8s.io/pause:3.10" }],
      },
    });

    async function job(app: string, parallelism: number): Promise<void> {
      const spec = { parallelism, completions: parallelism, template: templateOf(app) };
      await jobs.mustCreate({ metadata: { name: app }, spec });
      await podsExist(app, parallelism);
    }

    async function podsOf(app: string): Promise<readonly string[]> {
      const list = await ours.get("", { labelSelector: `app=${app}` });
      const items = field(list.body, "items") as readonly { metadata: { name: string } }[];
      return items.map(({ metadata }) => metadata.name);
    }

    async function podsExist(app: string, count: number): Promise<void> {
      const isMet = async () => (await podsOf(app)).length === count;
      await until({ what: `${app} has ${count} pods`, isMet });
    }

    async function budget(app: string, spec: object): Promise<void> {
      const selector = { matchLabels: { app } };
      await budgets(target).mustCreate({ metadata: { name: app }, spec: { ...spec, selector } });
    }

    async function stands(app: string, wanted: object): Promise<void> {
      let status: unknown;
      const isMet = async () => {
        status = field(await budgets(target).mustGet(app), "status");
        return matches(status, wanted);
      };
      await until({ what: `the budget ${app} stands`, isMet }).catch(() => undefined);
      expect(status).toMatchObject(wanted);
    }

    const because = (message: string) => ({
      disruptionsAllowed: 0,
      conditions: [{ type: "DisruptionAllowed", status: "False", reason: "SyncFailed", message }],
    });
    const noScale = because("jobs.batch does not implement the scale subresource");
    const insufficient = {
      disruptionsAllowed: 0,
      conditions: [{ type: "DisruptionAllowed", status: "False", reason: "InsufficientPods" }],
    };

    it.each([
      ["maxunavailable", { maxUnavailable: 1 }],
      ["percentage", { minAvailable: "50%" }],
    ])("fails for the pods of a Job: %s", async (name, spec) => {
      await job(`job-${name}`, 2);
      await budget(`job-${name}`, spec);
      await stands(`job-${name}`, noScale);
    });

    it("counts the pods of a Job with a number as minAvailable", async () => {
      await job("job-number", 2);
      await budget("job-number", { minAvailable: 1 });
      await stands("job-number", { ...insufficient, expectedPods: 2, desiredHealthy: 1 });
      for (const name of await podsOf("job-number")) await makeRun(ours, name);
      await stands("job-number", { currentHealthy: 2, disruptionsAllowed: 1 });
    });

    it("does not observe a budget that it could never compute, so an eviction is put off", async () => {
      await job("job-evicted", 1);
      await budget("job-evicted", { maxUnavailable: 1 });
      await stands("job-evicted", noScale);
      const [name = ""] = await podsOf("job-evicted");
      await makeRun(ours, name);
      const metadata = { name, namespace: target().namespace };
      const answer = await ours.post(`${name}/eviction`, { metadata });
      const refusal = mustRefuse(answer, { status: 429, reason: "TooManyRequests" });
      expect(field(refusal, "message")).toBeDefined();
      expect(field(refusal, "details.causes.0.message")).toBe(
        "The disruption budget job-evicted is still being processed by the server.",
      );
    });

    it("fails for a finished pod of a Job beside others, until it is removed", async () => {
      const app = "mixed";
      const spec = { replicas: 2, selector: { matchLabels: { app, set: "a" } } };
      const template = templateOf(app) as { spec: object };
      const labelled = {
        metadata: { labels: { app, set: "a" } },
        spec: { ...template.spec, restartPolicy: "Always" },
      };
      await sets.mustCreate({ metadata: { name: app }, spec: { ...spec, template: labelled } });
      await podsExist(app, 2);
      for (const name of await podsOf(app)) await makeRun(ours, name);
      await budget(app, { maxUnavailable: 1 });
      await stands(app, { disruptionsAllowed: 1, expectedPods: 2 });
      await job(`${app}-job`, 1);
      const [finished = ""] = await podsOf(`${app}-job`);
      await ours.merge(`${finished}/status`, { status: { phase: "Succeeded" } });
      await ours.merge(finished, { metadata: { labels: { app } } });
      await stands(app, { ...noScale, expectedPods: 2, currentHealthy: 2, observedGeneration: 1 });
      // A change of its labels would not be enough: only budgets that select a pod now are synced.
      await ours.delete(finished);
      await stands(app, { disruptionsAllowed: 1, expectedPods: 2 });
    });

    it("expects no bare pods with maxUnavailable, and so never allows an eviction", async () => {
      for (const name of ["bare-0", "bare-1"]) {
        await ours.mustCreate(pod(name, { nodeName, labels: { app: "bare" } }));
        await makeRun(ours, name);
      }
      await budget("bare", { maxUnavailable: 1 });
      await stands("bare", { ...insufficient, expectedPods: 0, currentHealthy: 2 });
    });
  });
}

function matches(found: unknown, wanted: object): boolean {
  try {
    expect(found).toMatchObject(wanted);
    return true;
  } catch {
    return false;
  }
}
