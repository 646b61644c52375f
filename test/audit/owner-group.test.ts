import { describe, expect, it } from "vitest";
import { auditYaml } from "./support/audit-yaml.ts";
import { remarks } from "./support/rule-remarks.ts";

const containers = "containers: [{name: main, image: main}]";
const own = (apiVersion: string, kind: string, seconds: number) =>
  `{apiVersion: ${apiVersion}, kind: ${kind}, metadata: {name: train, namespace: ml}, spec: {template: {spec: {terminationGracePeriodSeconds: ${seconds}, ${containers}}}}}\n`;
const podOf = (apiVersion: string, kind: string) =>
  `{apiVersion: v1, kind: Pod, metadata: {name: train-0, namespace: ml, labels: {app: train}, ownerReferences: [{apiVersion: ${apiVersion}, kind: ${kind}, name: train, controller: true}]}, spec: {terminationGracePeriodSeconds: 60, ${containers}}}\n`;

describe("two objects with one kind and one name, of different API groups", () => {
  it.each([
    ["Job", "batch/v1", "batch.volcano.sh/v1alpha1"],
    ["StatefulSet", "apps/v1", "example.com/v1"],
  ])("are judged each by the pods of its own: %s", async (kind, builtIn, custom) => {
    const { workloads } = await auditYaml(
      `${own(builtIn, kind, 20)}---\n${podOf(custom, kind)}---\n${podOf(builtIn, kind)}`,
    );

    expect(workloads).toMatchObject([
      { kind, name: "train", wantedGraceSeconds: 20 },
      { kind, name: "train", wantedGraceSeconds: 60 },
    ]);
  });

  it("are two workloads to a budget that selects the pods of both", async () => {
    const labeled = own("apps/v1", "StatefulSet", 20).replace(
      "template: {",
      "replicas: 1, template: {metadata: {labels: {app: train}}, ",
    );
    const budget =
      "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: train, namespace: ml}, spec: {minAvailable: 1, selector: {matchLabels: {app: train}}}}\n";

    expect(await remarks("pdb-blocks-forever", `${labeled}---\n${budget}`)).toHaveLength(1);
    expect(
      await remarks(
        "pdb-blocks-forever",
        `${labeled}---\n${podOf("example.com/v1", "StatefulSet")}---\n${budget}`,
      ),
    ).toEqual([]);
  });
});

it("knows the owner by an earlier group of its kind", async () => {
  const { workloads } = await auditYaml(
    `${own("apps/v1", "ReplicaSet", 20)}---\n${podOf("extensions/v1beta1", "ReplicaSet")}`,
  );

  expect(workloads).toMatchObject([{ kind: "ReplicaSet", wantedGraceSeconds: 20 }]);
});

it("gives no advice about a Job's fields for pods of a Job of another group", async () => {
  expect(await remarks("long-job-on-spot", podOf("batch.volcano.sh/v1alpha1", "Job"))).toEqual([]);
  expect(await remarks("long-job-on-spot", podOf("batch/v1", "Job"))).toHaveLength(1);
});
