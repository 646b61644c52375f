import { fieldsOf, listOf, valueAt, wholeNumberOf } from "../../core/json/json-field.ts";
import type { AuditedFleet } from "../fleet.ts";
import type { Workload } from "../objects/workload.ts";
import { type Remark, type Rule, spotWorkloads } from "../rule.ts";

/** A job that may run longer than this is likely to meet the end of a Spot node. */
const longSeconds = 3600;

export const longJobOnSpot: Rule = {
  id: "long-job-on-spot",
  severity: "warning",
  title: "a job that may run long, or may fail only once, can land on Spot nodes",
  why: "A job that loses its node starts again from nothing unless it writes checkpoints, and each loss counts as a failure unless a podFailurePolicy ignores the condition DisruptionTarget. With backoffLimit 0 one taken node fails the job. A deadline over an hour or a backoffLimit of 0 is a warning; no deadline at all is information, and nothing where it is a hook of Helm or Argo CD.",
  fix: "Write checkpoints; ignore DisruptionTarget in a podFailurePolicy (restartPolicy Never); or keep long jobs on stable nodes.",
  whenNotToUse: "The job is short although it sets no deadline, or it resumes where it stopped.",
  bad: {
    yaml: `apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: train}]
`,
  },
  good: {
    yaml: `apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  backoffLimit: 0
  podFailurePolicy:
    rules:
    - action: Ignore
      onPodConditions: [{type: DisruptionTarget}]
  template:
    spec:
      restartPolicy: Never
      containers: [{name: train, image: train}]
`,
  },
  check: checkLongJobOnSpot,
};

function checkLongJobOnSpot(fleet: AuditedFleet): readonly Remark[] {
  return spotWorkloads(fleet).flatMap((workload): readonly Remark[] => {
    const remark = judge(workload);
    return remark === undefined ? [] : [{ ...remark, about: workload }];
  });
}

function judge(workload: Workload): Omit<Remark, "about"> | undefined {
  const spec = jobSpecOf(workload);
  if (spec === undefined || ignoresDisruption(spec)) return undefined;
  const fix = "Write checkpoints, and ignore DisruptionTarget in a podFailurePolicy";
  if (wholeNumberOf(valueAt(spec, ["backoffLimit"])) === 0) {
    const message =
      "May fail only once (backoffLimit 0), and the loss of a node counts as a failure";
    return { severity: "warning", message, fix };
  }
  const podSeconds = valueAt(spec, ["template", "spec", "activeDeadlineSeconds"]);
  const limitSeconds = wholeNumberOf(valueAt(spec, ["activeDeadlineSeconds"]) ?? podSeconds);
  if (limitSeconds === undefined && isHook(workload)) return undefined;
  if (limitSeconds === undefined) {
    const message = "May run for any time, and starts again from nothing when its node goes";
    return { severity: "info", message, fix };
  }
  if (limitSeconds <= longSeconds) return undefined;
  const message = `May run for ${limitSeconds} s, and starts again from nothing when its node goes`;
  return { severity: "warning", message, fix };
}

/** A hook of Helm or Argo CD runs once, while somebody waits for it. */
function isHook({ manifest }: Workload): boolean {
  const keys = Object.keys(manifest.annotations);
  return keys.some((key) => key === "helm.sh/hook" || key === "argocd.argoproj.io/hook");
}

function jobSpecOf({ kind, manifest }: Workload): unknown {
  if (kind === "Job") return valueAt(manifest.json, ["spec"]);
  if (kind === "CronJob") return valueAt(manifest.json, ["spec", "jobTemplate", "spec"]);
  return undefined;
}

function ignoresDisruption(spec: unknown): boolean {
  return listOf(valueAt(spec, ["podFailurePolicy", "rules"])).some((rule) => {
    const { action, onPodConditions } = fieldsOf(rule);
    const types = listOf(onPodConditions).map((one) => fieldsOf(one).type);
    return action === "Ignore" && types.includes("DisruptionTarget");
  });
}
