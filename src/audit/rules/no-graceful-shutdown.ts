import { isGraceful } from "../../core/drain-plan/grace-budget.ts";
import { type AuditedFleet, canReach } from "../fleet.ts";
import type { Platform } from "../platform.ts";
import { type Remark, type Rule, spotWorkloads } from "../rule.ts";

export const noGracefulShutdown: Rule = {
  id: "no-graceful-shutdown",
  severity: "warning",
  title: "the nodes have no graceful shutdown at all",
  why: "A kubelet whose shutdownGracePeriod is 0 (the upstream default, and what EKS before kubelet 1.34 and AKS ship) does not end pods when the machine goes down: they vanish with it, without SIGTERM and without preStop, and stay listed as running until the node is removed.",
  fix: "Set shutdownGracePeriod in the node's kubelet configuration where the platform lets you, and in any case drain on the notice, before the machine goes down.",
  whenNotToUse: "Something drains every node at its notice, and its success is watched.",
  bad: {
    platforms: ["aks"],
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: web}]}}}
`,
  },
  good: {
    platforms: ["eks-al2023"],
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: web}]}}}
`,
  },
  check: checkNoGracefulShutdown,
};

function checkNoGracefulShutdown(
  fleet: AuditedFleet,
  platforms: readonly Platform[],
): readonly Remark[] {
  const workloads = spotWorkloads(fleet);
  return platforms.flatMap((platform): readonly Remark[] => {
    const [example, ...more] = workloads.filter((workload) => canReach(workload, platform));
    if (isGraceful(platform.groups) || example === undefined) return [];
    const touched = 1 + more.length;
    const known = platform.source === "Unknown" ? "No budget is known on" : "Pods get no time on";
    const message = `${known} ${platform.name}: ${touched} ${touched === 1 ? "workload dies" : "workloads die"} with the machine unless it is drained before`;
    const fix =
      "Set shutdownGracePeriod in the kubelet configuration of these nodes, and drain on the notice";
    const about = undefined;
    return [{ severity: "warning", platform: platform.name, about, example, message, fix }];
  });
}
