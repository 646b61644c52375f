import { describe, expect, it } from "vitest";
import { field, mustBe, nodes, pods, type TargetOf, until } from "./dialog.ts";

/**
 * What a cordon means to the scheduler. Source: kubernetes
 * `pkg/scheduler/framework/plugins/nodeunschedulable`.
 */
export function schedulingSentences(target: TargetOf): void {
  describe("a cordoned node", () => {
    const ours = pods(target);
    const name = "cordoned";

    async function makeNode(): Promise<void> {
      const labels = { place: name };
      await nodes(target).mustCreate({ metadata: { name, labels }, spec: { unschedulable: true } });
      const allocatable = { cpu: "4", memory: "16Gi", pods: "110" };
      const conditions = [{ type: "Ready", status: "True", reason: "KubeletReady" }];
      const status = { allocatable, capacity: allocatable, conditions };
      mustBe(200, await nodes(target).merge(`${name}/status`, { status }));
    }

    async function makePod(podName: string, tolerations: readonly object[]): Promise<void> {
      await ours.mustCreate({
        metadata: { name: podName },
        spec: {
          nodeSelector: { place: name },
          tolerations,
          containers: [{ name: "main", image: "registry.k8s.io/pause:3.10" }],
        },
      });
    }

    it("takes a pod that tolerates everything, and no other", async () => {
      await makeNode();
      await makePod("ordinary", []);
      await makePod("sticky", [{ operator: "Exists" }]);
      await until({
        what: "the pod that tolerates everything is bound",
        isMet: async () => field(await ours.mustGet("sticky"), "spec.nodeName") === name,
      });
      await until({
        what: "the scheduler has tried the other one",
        isMet: async () => {
          const conditions = field(await ours.mustGet("ordinary"), "status.conditions");
          return JSON.stringify(conditions ?? []).includes("Unschedulable");
        },
      });
      expect(field(await ours.mustGet("ordinary"), "spec.nodeName")).toBeUndefined();
      await ours.delete("ordinary");
      await ours.delete("sticky", { query: { gracePeriodSeconds: "0" } });
      await nodes(target).delete(name);
    });
  });
}
