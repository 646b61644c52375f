import { type Fleet, replicasOf } from "../fleet.ts";
import { isReplicated, type Remark, type Rule, spotWorkloads } from "../rule.ts";
import type { Workload } from "../workload.ts";

export const singleReplica: Rule = {
  id: "single-replica",
  severity: "warning",
  title: "one pod is all there is",
  why: "When its node goes, the service is away until a new pod is scheduled, pulled and ready; on a Spot node that happens at any time. A pod without a controller does not come back at all.",
  fix: "Run two replicas or more, or keep the workload on stable nodes.",
  whenNotToUse: "A pause of minutes is acceptable, or two copies must never run at once.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  template: {spec: {containers: [{name: web, image: web}]}}
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template: {spec: {containers: [{name: web, image: web}]}}
`,
  },
  check: checkSingleReplica,
};

function checkSingleReplica(fleet: Fleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    const message = messageOn(fleet, workload);
    if (message === undefined) return [];
    const fix = "Run at least two replicas, or keep it on nodes that are not Spot";
    return [{ severity: "warning", about: workload, message, fix }];
  });
}

function messageOn(fleet: Fleet, workload: Workload): string | undefined {
  if (workload.kind === "Pod") {
    const comesBack = workload.template.restartPolicy === "Always";
    return comesBack ? "No controller makes this pod again when its node goes" : undefined;
  }
  if (!isReplicated(workload) || replicasOf(fleet, workload) !== 1) return undefined;
  return "The only replica goes with its node, and nothing serves until a new one is ready";
}
