import { type AuditedFleet, servedBy } from "../fleet.ts";
import type { Workload } from "../objects/workload.ts";
import { isReplicated, type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const readinessMissing: Rule = {
  id: "readiness-missing",
  severity: "warning",
  title: "a served workload has no readiness probe",
  why: "Without a readiness probe a replacement counts as ready as soon as its process exists: traffic arrives before it listens, and a PodDisruptionBudget lets the next pod go too early. On Spot nodes pods are replaced all the time. Judged where a Service of the input selects the pods or, where none does, a container names a port; ports whose name says metrics or health do not count, and gateways that Istio injects get their probe from it.",
  fix: "Add a readinessProbe to a container that serves.",
  whenNotToUse:
    "Nothing waits for the pods: workers that fetch their own work, or a port that is for metrics and not named so.",
  bad: {
    yaml: `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`,
  },
  good: {
    yaml: `apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web
        readinessProbe: {httpGet: {path: /ready, port: 8080}}
`,
  },
  check: checkReadinessMissing,
};

function checkReadinessMissing(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    const { containers } = workload.template;
    if (!isReplicated(workload) || containers.some((one) => one.hasReadinessProbe)) return [];
    if (isIstioGateway(workload)) return [];
    const served = servedBy(fleet, workload);
    if (served === "Status") return [];
    if (served === "Unknown" && !containers.some((one) => one.hasPorts)) return [];
    const how = served === "Requests" ? "A Service selects its pods" : "It names ports";
    const message = `${how}, and no container has a readiness probe`;
    const fix = "Add a readinessProbe to the container that serves";
    return [{ severity: "warning", about: workload, message, fix }];
  });
}

/**
 * Istio's injection writes the whole container of a gateway, its readiness probe included.
 * Source: istio gateway-injection-template.yaml.
 */
function isIstioGateway({ template }: Workload): boolean {
  const injected = template.annotations["inject.istio.io/templates"] ?? "";
  return injected.split(",").some((name) => name.trim() === "gateway");
}
