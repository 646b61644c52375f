import { describe, expect, it } from "vitest";
import {
  type GangPod,
  gangOf,
  gangsByNode,
  isElastic,
  spreadGangs,
} from "../../../src/core/cluster/gang.ts";

type Labels = Readonly<Record<string, string>>;

function pod(node: string, labels: Labels, namespace = "ml"): GangPod {
  return { node, namespace, labels, annotations: {} };
}

const train = { "jobset.sigs.k8s.io/jobset-name": "train" };

function group(index: string): Labels {
  return {
    "leaderworkerset.sigs.k8s.io/name": "vllm",
    "leaderworkerset.sigs.k8s.io/group-index": index,
    // Kueue labels the same pods.
    "kueue.x-k8s.io/pod-group-name": `leaderworkerset-vllm-${index}-fd0f7`,
  };
}

describe("a workload on several nodes", () => {
  it.each<[Labels, string | undefined]>([
    [train, "JobSet ml/train"],
    [group("1"), "LeaderWorkerSet ml/vllm group 1"],
    [{ "kueue.x-k8s.io/pod-group-name": "nccl" }, "pod group ml/nccl"],
    [{ "scheduling.x-k8s.io/pod-group": "pg1" }, "pod group ml/pg1"],
    [{ "pod-group.scheduling.sigs.k8s.io": "pg1" }, "pod group ml/pg1"],
    [{ "volcano.sh/job-name": "mnist" }, "Volcano Job ml/mnist"],
    [{ "training.kubeflow.org/job-name": "ddp" }, "training job ml/ddp"],
    [{ "ray.io/worker-group-replica-name": "tpu-4f2a" }, "Ray worker group replica ml/tpu-4f2a"],
    [{ "grove.io/podgang": "llm-0" }, "Grove PodGang ml/llm-0"],
    [{ app: "web", "batch.kubernetes.io/job-name": "alone" }, undefined],
  ])("is recognized by the labels of its pods: %j", (labels, name) => {
    expect(gangOf(pod("n1", labels))?.name).toBe(name);
  });

  it.each<[Labels, string | undefined]>([
    [{ "scheduling.k8s.io/group-name": "pg1" }, "pod group ml/pg1"],
    [{ "scheduling.volcano.sh/group-name": "pg1" }, "pod group ml/pg1"],
    [{ "gang.scheduling.koordinator.sh/name": "pg1" }, "pod group ml/pg1"],
    [{ "armadaproject.io/gangId": "g1" }, "Armada gang ml/g1"],
    [{ "yunikorn.apache.org/task-group-name": "ps" }, "YuniKorn application ml/ps"],
    [
      { "yunikorn.apache.org/task-group-name": "ps", "yunikorn.apache.org/app-id": "tf1" },
      "YuniKorn application ml/tf1",
    ],
    // The group that Volcano makes for a pod that needs none.
    [
      { "scheduling.k8s.io/group-name": "podgroup-7a09885b-b753-4924-9fba-77c0836bac20" },
      undefined,
    ],
    [{ "scheduling.k8s.io/group-name": "" }, undefined],
    // A deployment of YuniKorn's applications without a gang.
    [{ "yunikorn.apache.org/app-id": "web" }, undefined],
  ])("is recognized by the annotations of its pods: %j", (annotations, name) => {
    expect(gangOf({ ...pod("n1", { app: "x" }), annotations })?.name).toBe(name);
  });

  it.each<[Labels, Labels, number | undefined]>([
    [{ "kueue.x-k8s.io/pod-group-name": "a" }, { "kueue.x-k8s.io/pod-group-total-count": "1" }, 1],
    [{ "kueue.x-k8s.io/pod-group-name": "a" }, { "kueue.x-k8s.io/pod-group-total-count": "2" }, 2],
    [{ "kueue.x-k8s.io/pod-group-name": "a" }, { "kueue.x-k8s.io/pod-group-total-count": "x" }, 0],
    [group("0"), { "leaderworkerset.sigs.k8s.io/size": "3" }, 3],
    [{}, { "armadaproject.io/gangId": "g", "armadaproject.io/gangCardinality": "1" }, 1],
    [
      {},
      {
        "gang.scheduling.koordinator.sh/name": "g",
        "gang.scheduling.koordinator.sh/min-available": "1",
      },
      1,
    ],
  ])(
    "of %j with the annotations %j has %s pods, and of one is none",
    (labels, annotations, pods) => {
      const found = gangOf({ ...pod("n1", labels), annotations });
      expect(found === undefined ? 1 : (found.pods ?? 0)).toBe(pods);
    },
  );

  it("is the application of YuniKorn whose task groups have several names", () => {
    const groups = ["driver", "executor"].map((group, at) => ({
      ...pod(`n${at}`, { applicationId: "spark-1" }),
      annotations: { "yunikorn.apache.org/task-group-name": group },
    }));
    expect(gangsByNode(spreadGangs(groups)).get("n1")).toBe(
      "YuniKorn application ml/spark-1 on n0, n1",
    );
  });

  it("has the name that says most about it", () => {
    const annotations = { "scheduling.k8s.io/group-name": "train-fd0f7" };
    const one = { ...pod("n1", { "volcano.sh/job-name": "train" }), annotations };
    expect(gangOf(one)?.name).toBe("Volcano Job ml/train");
    expect(gangOf({ ...one, labels: {}, schedulingGroup: "other" })?.name).toBe(
      "pod group ml/train-fd0f7",
    );
  });

  it("is not what Kueue only queues as a group", () => {
    const labels = { "kueue.x-k8s.io/pod-group-name": "web" };
    const annotations = { "kueue.x-k8s.io/pod-group-serving": "true" };
    expect(gangOf({ namespace: "ml", labels, annotations })).toBeUndefined();
  });

  it.each<[Labels, Labels, string | undefined]>([
    [{ "training.kubeflow.org/job-name": "ddp" }, {}, undefined],
    [train, {}, undefined],
    // The group is only scheduled at once.
    [
      { "training.kubeflow.org/job-name": "d", "scheduling.x-k8s.io/pod-group": "d" },
      {},
      undefined,
    ],
    [{}, { "scheduling.k8s.io/group-name": "pg1" }, undefined],
    // Their controllers end the other pods, whatever runs in them.
    [group("1"), {}, "LeaderWorkerSet ml/vllm group 1"],
    [{ "grove.io/podgang": "llm-0" }, {}, "Grove PodGang ml/llm-0"],
  ])("of the marks %j and %j that is elastic is %s", (labels, annotations, name) => {
    const elastic = { ...pod("n1", labels), annotations, isElastic: true };
    expect(gangOf(elastic)?.name).toBe(name);
  });

  it("of Kubernetes' workload API that is elastic is none", () => {
    const elastic = { ...pod("n1", {}), schedulingGroup: "pg1", isElastic: true };
    expect(gangOf(elastic)).toBeUndefined();
  });

  it("is found on each of its nodes", () => {
    const pods = ["n2", "n1", "n1"].map((node) => pod(node, train));
    const text = "JobSet ml/train on n1, n2";
    expect(gangsByNode(spreadGangs(pods))).toEqual(
      new Map([
        ["n2", text],
        ["n1", text],
      ]),
    );
  });

  it("is the same one of two on a node, in whatever order their pods are listed", () => {
    const other = { "jobset.sigs.k8s.io/jobset-name": "eval" };
    const pods = ["n1", "n2"].flatMap((node) => [pod(node, train), pod(node, other)]);
    for (const listed of [pods, pods.toReversed()]) {
      expect(gangsByNode(spreadGangs(listed)).get("n1")).toBe("JobSet ml/eval on n1, n2");
    }
  });

  it("is named with three of its nodes and the number of the others", () => {
    const pods = ["n1", "n2", "n3", "n4", "n5"].map((node) => pod(node, train));
    expect(gangsByNode(spreadGangs(pods)).get("n5")).toBe(
      "JobSet ml/train on n1, n2, n3 and 2 more",
    );
  });

  it("does not hold a node that has all of it, nor another group or namespace", () => {
    const pods = [
      ...[pod("n1", train), pod("n1", train), pod("n2", train, "other")],
      ...[pod("n3", group("0")), pod("n4", group("1")), pod("n5", { app: "web" })],
    ];
    expect(gangsByNode(spreadGangs(pods))).toEqual(new Map());
  });
});

describe("a pod is elastic", () => {
  const env = (value: unknown) => ({ env: [{ name: "PET_NNODES", value }] });
  const run = (...args: readonly string[]) => ({ command: ["torchrun", ...args, "train.py"] });

  it.each<[string, readonly object[], boolean]>([
    ["if torchrun may start with fewer nodes", [env("1:4")], true],
    ["if one of its containers is", [{ name: "proxy" }, env("2:16")], true],
    ["if its command says so", [run("--nnodes=1:4")], true],
    ["if its command says so in two words", [run("--nnodes", "1:4")], true],
    ["if its arguments say so", [{ args: ["torchrun", "--nnodes=1:4"] }], true],
    [
      "if its shell script says so",
      [{ command: ["sh", "-c", 'torchrun --nnodes "2:4" t.py'] }],
      true,
    ],
    [
      "if the command says so, which takes precedence",
      [{ ...env("4"), ...run("--nnodes=1:4") }],
      true,
    ],
    ["not if the command says otherwise", [{ ...env("1:4"), ...run("--nnodes=4") }], false],
    ["not with a fixed number", [env("4")], false],
    ["not if it needs all of them", [env("4:4")], false],
    ["not by what is no range", [env("1:"), env(":4"), env(4), env("a:b"), env(null), {}], false],
    ["not by a flag that only begins alike", [run("--nnodes-min=1:4")], false],
    ["not without containers", [], false],
  ])("%s", (_, containers, elastic) => {
    expect(isElastic({ containers })).toBe(elastic);
  });

  it("not if its spec cannot be read", () => {
    expect([isElastic({ containers: "none" }), isElastic({})]).toEqual([false, false]);
  });
});
