import { type AuditedFleet, canReach, graceOn } from "../fleet.ts";
import type { Workload } from "../objects/workload.ts";
import type { Platform } from "../platform.ts";
import { type Remark, type Rule, type Severity, spotWorkloads } from "../rule.ts";

/** The central rule: the kubelet gives less than the pod asks for. */
export const graceCut: Rule = {
  id: "grace-cut",
  severity: "error",
  title: "the pod asks for more seconds than the node gives it at shutdown",
  why: "When a Spot node is taken, its kubelet ends each pod within the budget of the pod's priority group, whatever terminationGracePeriodSeconds says. A longer grace is not refused and not reported: the process is killed in the middle of what it does. The API server's default of 30 s counts as information only, because nobody chose it.",
  fix: "Finish within the budget and ask for no more than it, or raise the node's shutdownGracePeriod (GKE Spot pools take 120 s), or keep the workload off Spot nodes.",
  whenNotToUse:
    "The work after SIGTERM may be lost at any time, and the longer grace is meant for rollouts on stable nodes only.",
  bad: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 60
      containers: [{name: web, image: web}]
`,
  },
  good: {
    yaml: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec:
      terminationGracePeriodSeconds: 15
      containers: [{name: web, image: web}]
`,
  },
  check: checkGraceCut,
};

function checkGraceCut(fleet: AuditedFleet, platforms: readonly Platform[]): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload) =>
    platforms
      .filter((platform) => canReach(workload, platform) && graceOn(platform, workload).cut)
      .map((platform) => remarkOn(workload, platform)),
  );
}

function remarkOn(workload: Workload, platform: Platform): Remark {
  const { grantedSeconds } = graceOn(platform, workload);
  const asks = `${workload.wantedGraceSeconds} s${workload.graceSource === "Set" ? "" : " (the default)"}`;
  const fix =
    grantedSeconds > 0
      ? `Finish within ${grantedSeconds} s and set terminationGracePeriodSeconds to at most that, or raise the node's shutdownGracePeriod`
      : "Set shutdownGracePeriod on the nodes, or rely on a drain that runs before the machine goes";
  const message = `Asks for ${asks} and gets ${grantedSeconds} s on ${platform.name} at priority ${workload.priority}`;
  return {
    severity: severityOn(workload, platform),
    platform: platform.name,
    about: workload,
    message,
    fix,
  };
}

/** Nobody chose the default, and nobody knows an unknown budget: neither fails a build. */
function severityOn(workload: Workload, platform: Platform): Severity {
  return workload.graceSource === "Set" && platform.source !== "Unknown" ? "error" : "info";
}
