import { expect, it } from "vitest";
import { auditYaml } from "./support/audit-yaml.ts";

it.each([
  ["gateway.k8s.aws/v1beta1", "TargetGroupConfiguration"],
  ["eks.amazonaws.com/v1", "NodeClass"],
  ["elbv2.k8s.aws/v1beta1", "TargetGroupBinding"],
  ["karpenter.sh/v1", "NodePool"],
  ["kueue.x-k8s.io/v1beta1", "ClusterQueue"],
  ["scheduling.volcano.sh/v1beta1", "PodGroup"],
  ["scheduling.x-k8s.io/v1alpha1", "PodGroup"],
  ["trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime"],
])("does not miss the pods of what creates none: %s %s", async (apiVersion, kind) => {
  const yaml = `{apiVersion: ${apiVersion}, kind: ${kind}, metadata: {name: a}, spec: {}}\n`;

  expect((await auditYaml(yaml)).notJudged).toEqual([]);
});

it("misses those of a TrainJob", async () => {
  const yaml =
    "{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, metadata: {name: a}, spec: {}}\n";

  expect((await auditYaml(yaml)).notJudged).toMatchObject([{ kind: "TrainJob" }]);
});
