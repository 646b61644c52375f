import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { audit } from "../../src/audit/audit.ts";
import { auditTable, githubAnnotations, sarifLog } from "../../src/audit/audit-output.ts";
import { leanObject } from "../../src/audit/objects/manifest.ts";
import type { AuditReport } from "../../src/audit/report.ts";
import { isLastcallError } from "../../src/errors.ts";
import { platform } from "./support/audit-yaml.ts";

/**
 * Every field that the audit reads somewhere, so that any value can appear in an unexpected place.
 */
const fields =
  `metadata spec status template jobTemplate containers initContainers volumes name namespace
labels annotations ownerReferences kind controller uid replicas parallelism selector matchLabels
matchExpressions key operator values minAvailable maxUnavailable terminationGracePeriodSeconds
priority priorityClassName value globalDefault nodeSelector affinity nodeAffinity podAntiAffinity
requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution
nodeSelectorTerms podAffinityTerm labelSelector topologyKey namespaces topologySpreadConstraints
tolerations effect lifecycle preStop exec httpGet command args sleep seconds ports targetPort
readinessProbe volumeMounts mountPath readOnly emptyDir medium hostPath path restartPolicy
scaleTargetRef minReplicas maxReplicas minReplicaCount taints providerID nodeInfo kubeletVersion
osImage conditions type phase activeDeadlineSeconds backoffLimit podFailurePolicy rules action
onPodConditions connectionDraining drainingTimeoutSec default loadBalancerClass ingressClassName
__proto__ constructor`.split(/\s+/);

const words = [
  ...["", "web", "-1", "sh", "-c", "a; b", "In", "Exists", "Always", "Job", "Node", "50%", "alb"],
  ...["gce://p/z/n", "v1.33.1-gke.1", "system-cluster-critical", "LoadBalancer", "\u0000\n"],
];
const kinds = [
  ...[
    ["v1", "Pod"],
    ["v1", "Service"],
    ["v1", "Node"],
    ["v1", "ReplicationController"],
  ],
  ...[
    ["apps/v1", "Deployment"],
    ["apps/v1", "StatefulSet"],
    ["apps/v1", "DaemonSet"],
  ],
  ...[
    ["batch/v1", "Job"],
    ["batch/v1", "CronJob"],
    ["policy/v1", "PodDisruptionBudget"],
  ],
  ...[
    ["autoscaling/v2", "HorizontalPodAutoscaler"],
    ["keda.sh/v1alpha1", "ScaledObject"],
  ],
  ...[
    ["networking.k8s.io/v1", "Ingress"],
    ["cloud.google.com/v1", "BackendConfig"],
  ],
  ...[
    ["scheduling.k8s.io/v1", "PriorityClass"],
    ["example.com/v1", "Made"],
  ],
];

const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(...words),
    fc.constantFrom(0, 1, -1, 2.5, 30, 60, 2_000_000_000, Number.MAX_SAFE_INTEGER),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...fields), tie("value"), { maxKeys: 6 }),
  ),
}));
const object = fc
  .tuple(fc.constantFrom(...kinds), value, value, value)
  .map(([[apiVersion, kind], metadata, spec, status]) => ({
    ...{ apiVersion, kind, metadata, spec, status },
    value: spec,
  }));
/** A workload with the right outline, so that the odd value is found further inside. */
const workload = fc
  .tuple(fc.constantFrom(...kinds.slice(4, 8)), value, value)
  .map(([[apiVersion, kind], metadata, pod]) => ({
    ...{ apiVersion, kind, metadata: { name: "w", labels: metadata } },
    spec: { replicas: 2, template: { metadata, spec: { containers: [pod], ...Object(pod) } } },
  }));

function printAll(report: AuditReport): void {
  auditTable(report, { colour: "On", rows: 10 });
  githubAnnotations(report);
  JSON.stringify(sarifLog(report, { version: "1" }));
}

function judge(objects: readonly { kind: string | undefined }[], named: readonly string[]) {
  const sources = objects.map((json) => ({ json, origin: "Recorded" as const }));
  try {
    return audit({ sources, platforms: named.map(platform) });
  } catch (error) {
    if (!isLastcallError(error) || error.code !== "INPUT_INVALID") throw error;
    return error.message;
  }
}

describe("the audit of arbitrary objects", () => {
  it.each([[["gke", "aks"]], [[]]])(
    "judges them against %j and prints every format, or refuses them in a sentence",
    (named) => {
      const input = fc.array(fc.oneof(object, workload), { maxLength: 5 });
      fc.assert(
        fc.property(input, (objects) => {
          const report = judge(objects, named);
          if (typeof report === "string") expect(report).toMatch(/^Cannot audit /);
          else printAll(report);
        }),
        { numRuns: 400 },
      );
    },
  );

  it("judges a lean object like the whole one", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(object, workload), { maxLength: 5 }), (objects) => {
        const lean = objects.map((one) => ({ ...leanObject({ ...one }), kind: one.kind }));

        expect(judge(lean, ["gke", "aks"])).toEqual(judge(objects, ["gke", "aks"]));
      }),
      { numRuns: 400 },
    );
  });
});
