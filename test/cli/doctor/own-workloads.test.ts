import { describe, expect, it } from "vitest";
import {
  otherToolsIn,
  ownPods,
  ownWorkload,
  workloadFacts,
} from "../../../src/cli/doctor/own-workloads.ts";
import type { KubeObject } from "../../../src/contracts/kube-api.ts";
import { fieldsOf, valueAt } from "../../../src/core/json/json-field.ts";
import { known, optionOf, unknown } from "../../../src/doctor/facts.ts";

const part = (name: string, component: string) => ({
  "app.kubernetes.io/name": name,
  "app.kubernetes.io/component": component,
});

function deployment(container: object, labels: Readonly<Record<string, string>>): KubeObject {
  return {
    kind: "Deployment",
    metadata: { name: "x", namespace: "ops", labels },
    spec: { replicas: 2, template: { spec: { containers: [container] } } },
    status: { readyReplicas: 1 },
  };
}

describe("the controller's Deployment", () => {
  it("says what refuses its pods", () => {
    const message = 'pods "x-1" is forbidden: exceeded quota: team';
    const one = deployment({ image: "lastcall:1.2.3" }, part("lastcall", "controller"));
    const conditions = [
      { type: "Progressing", status: "False", message: "timed out" },
      { type: "ReplicaFailure", status: "True", reason: "FailedCreate", message },
    ];
    const status = { ...Object(one.status), conditions };
    expect(workloadFacts({ ...one, status }).refused).toBe(message);
    expect(workloadFacts(one).refused).toBeUndefined();
  });

  it("is found by its labels, or by its image if a chart names it differently", () => {
    const image = "registry.example/lastcall:1.2.3";
    const byName = deployment({ image: "mirror/x@sha256:0" }, part("lastcall", "controller"));
    const byImage = deployment({ image }, part("killer", "controller"));
    for (const one of [byName, byImage]) {
      expect(ownWorkload([one], "controller", undefined)).toBe(one);
      expect(workloadFacts(one)).toMatchObject({ wanted: 2, ready: 1 });
      expect(ownWorkload([one], "agent", undefined)).toBeUndefined();
      expect(ownWorkload([one], "controller", "elsewhere")).toBeUndefined();
    }
    const other = deployment({ image: "nginx:1" }, part("web", "controller"));
    expect(ownWorkload([other], "controller", undefined)).toBeUndefined();
  });

  it.each([
    [
      { args: ["run", "--dry-run", "--sqs-queue-url=https://q"] },
      { "dry-run": "true", "sqs-queue-url": "https://q" },
    ],
    [{ args: ["run", "--sqs-queue-url", "https://q"] }, { "sqs-queue-url": "https://q" }],
    [{ command: ["lastcall", "run", "--no-leader-elect"] }, { "leader-elect": "false" }],
    [
      {
        env: [
          { name: "LASTCALL_DRY_RUN", value: "true" },
          { name: "POD_NAME", valueFrom: {} },
        ],
      },
      { "dry-run": "true" },
    ],
    [
      { args: ["--dry-run=false"], env: [{ name: "LASTCALL_DRY_RUN", value: "true" }] },
      { "dry-run": "false" },
    ],
  ])("shows its options: %j", (container, options) => {
    const found = deployment({ image: "lastcall", ...container }, part("lastcall", "controller"));
    expect(workloadFacts(found)).toMatchObject({ options, hiddenOptions: [] });
  });

  const map = { name: "settings", key: "dry" };
  it.each([
    [
      { env: [{ name: "LASTCALL_DRY_RUN", valueFrom: { configMapKeyRef: map } }] },
      { option: "dry-run", place: "the ConfigMap settings" },
    ],
    [
      { env: [{ name: "LASTCALL_CONFIG", valueFrom: { secretKeyRef: map } }] },
      { option: undefined, place: "the Secret settings" },
    ],
    [{ envFrom: [{ secretRef: map }] }, { option: undefined, place: "the Secret settings" }],
    [
      { args: ["run", "--config", "/etc/lastcall.yaml"] },
      { option: undefined, place: "the file /etc/lastcall.yaml" },
    ],
    [
      { env: [{ name: "LASTCALL_CONFIG", value: "/x.yaml" }] },
      { option: undefined, place: "the file /x.yaml" },
    ],
    [{ args: ["run", "$(OPTIONS)"] }, { option: undefined, place: "$(OPTIONS) of its container" }],
    [
      { args: ["run", "--dry-run", "$(DRY)"] },
      { option: "dry-run", place: "$(DRY) of its container" },
    ],
    [
      { command: ["/bin/sh", "-c", "exec lastcall run --dry-run"] },
      { option: undefined, place: "the program /bin/sh" },
    ],
    [
      { command: ["/entrypoint.sh"], args: ["run"] },
      { option: undefined, place: "the program /entrypoint.sh" },
    ],
    [
      { args: ["run", "--dry-run=$(DRY)"] },
      { option: "dry-run", place: "$(DRY) of its container" },
    ],
  ])("shows where options are that it cannot see: %j", (container, hidden) => {
    const found = deployment({ image: "lastcall", ...container }, part("lastcall", "controller"));
    const { hiddenOptions, options } = workloadFacts(found);
    expect(hiddenOptions).toEqual([hidden]);
    expect(options["dry-run"]).toBeUndefined();
  });

  it.each(["node", "/usr/local/bin/lastcall", "lastcall"])(
    "are all shown if the program is %s",
    (program) => {
      const container = { image: "lastcall", command: [program, "run"], args: ["--dry-run"] };
      const found = workloadFacts(deployment(container, part("lastcall", "controller")));
      expect(found).toMatchObject({ options: { "dry-run": "true" }, hiddenOptions: [] });
    },
  );

  it("are those of its own container, wherever that is in the list", () => {
    const found = deployment({ image: "istio/proxyv2", args: ["proxy"] }, {});
    const { containers } = fieldsOf(valueAt(found.spec, ["template", "spec"]));
    (containers as object[]).push({ image: "x/lastcall:1", args: ["run", "--dry-run"] });
    expect(workloadFacts(found)).toMatchObject({
      image: "x/lastcall:1",
      options: { "dry-run": "true" },
    });
  });

  it("may be hidden only if no flag or variable sets it", () => {
    const [found] = [{ envFrom: [{ configMapRef: map }], args: ["--dry-run=false"] }].map(
      (container) => workloadFacts(deployment({ image: "lastcall", ...container }, {})),
    );
    const of = (name: string) => found && optionOf(found, name);
    expect(of("dry-run")).toEqual(known("false"));
    expect(of("leader-elect")).toEqual(
      unknown("--leader-elect may be set in the ConfigMap settings, which is not read"),
    );
  });

  it.each([
    [undefined, true],
    [{ type: "RollingUpdate" }, true],
    [{ type: "Recreate" }, false],
  ])("tells whether an update overlaps: %j", (strategy, overlaps) => {
    const one = deployment({ image: "lastcall" }, {});
    const spec = { ...(one.spec as object), strategy };
    expect(workloadFacts({ ...one, spec }).overlaps).toBe(overlaps);
  });
});

describe("another tool", () => {
  it.each([
    [
      "public.ecr.aws/aws-ec2/aws-node-termination-handler:v1.25.0",
      "aws-node-termination-handler",
      true,
    ],
    ["estafette/estafette-gke-preemptible-killer:1.3.1", "estafette's preemptible killer", true],
    ["public.ecr.aws/karpenter/controller:1.6.0@sha256:0", "Karpenter", false],
    ["registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0", "cluster-autoscaler", false],
    ["ghcr.io/kubereboot/kured:1.19.0", "kured", false],
  ])("is recognized by its image %s", (image, tool, rival) => {
    const place = "Deployment ops/x";
    expect(otherToolsIn([deployment({ image }, {})])).toEqual([{ tool, rival, place }]);
  });

  it("is not recognized by an image that only has a similar name", () => {
    expect(otherToolsIn([deployment({ image: "example/drainon:1" }, {})])).toEqual([]);
  });
});

describe("a pod of Lastcall", () => {
  const pod = (labels: Readonly<Record<string, string>>, image: string, reason?: string) => ({
    metadata: { name: "x", labels },
    spec: { containers: [{ image }] },
    status: { containerStatuses: [{ state: { waiting: { reason } } }] },
  });
  const waitingOf = (reason: string) =>
    ownPods([pod(part("lastcall", "agent"), "mirror/x@sha256:0", reason)])[0]?.waiting;

  it.each(["ImagePullBackOff", "CrashLoopBackOff"])("has the waiting reason %s", (reason) => {
    expect(waitingOf(reason)).toBe(reason);
  });
  it("has the message of the scheduler that found no node", () => {
    const message = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.";
    const conditions = [
      { type: "PodScheduled", status: "False", reason: "Unschedulable", message },
    ];
    const pending = { ...pod(part("lastcall", "agent"), "x"), status: { conditions } };
    expect(ownPods([pending])[0]?.unscheduled).toBe(message);
  });
  it.each([
    [
      "that is gated",
      [
        {
          reason: "SchedulingGated",
          message: "Scheduling is blocked due to non-empty scheduling gates",
        },
      ],
      "Scheduling is blocked due to non-empty scheduling gates",
    ],
    [
      "that the scheduler refused without words",
      [{ reason: "Unschedulable", message: "" }],
      "Unschedulable",
    ],
    ["that no scheduler has seen", [], "not scheduled yet"],
  ])("says why it has no node, also one %s", (_, told, expected) => {
    const conditions = told.map((one) => ({ type: "PodScheduled", status: "False", ...one }));
    const pending = {
      ...pod(part("lastcall", "controller"), "x"),
      status: { phase: "Pending", conditions },
    };
    expect(ownPods([pending])[0]?.unscheduled).toBe(expected);
    const running = { ...pending, status: { phase: "Running", conditions: [] } };
    expect(ownPods([running])[0]?.unscheduled).toBeUndefined();
  });
  it("has no waiting reason while its container is being created", () => {
    expect(waitingOf("ContainerCreating")).toBeUndefined();
  });
  it("is found by its label or its image, beside other applications with such components", () => {
    const found = ownPods([
      pod(part("datadog", "agent"), "gcr.io/datadoghq/agent:7"),
      pod(part("ingress-nginx", "controller"), "registry.k8s.io/ingress-nginx/controller:v1"),
      pod(part("killer", "controller"), "registry.example/lastcall:1.2.3"),
      pod(part("lastcall", "placeholder"), "registry.k8s.io/pause:3.10"),
    ]);
    expect(found.map(({ component }) => component)).toEqual(["controller", "placeholder"]);
  });
});
