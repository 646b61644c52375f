import { describe, expect, it } from "vitest";
import { otherToolsIn, ownPods, ownWorkload } from "../../../src/cli/doctor/own-workloads.ts";
import type { KubeObject } from "../../../src/contracts/kube-api.ts";

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
  it("is found by its labels, or by its image if a chart names it differently", () => {
    const image = "registry.example/lastcall:1.2.3";
    const byName = deployment({ image: "mirror/x@sha256:0" }, part("lastcall", "controller"));
    const byImage = deployment({ image }, part("killer", "controller"));
    for (const one of [byName, byImage]) {
      expect(ownWorkload([one], "controller", undefined)).toMatchObject({ wanted: 2, ready: 1 });
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
    expect(ownWorkload([found], "controller", undefined)?.options).toEqual(options);
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
