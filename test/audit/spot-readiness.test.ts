import { describe, expect, it } from "vitest";
import { ruleList } from "../../src/audit/rule-list.ts";
import { ruleOfLoss, spotReadiness } from "../../src/audit/spot-readiness.ts";
import { auditYaml, deployment } from "./support/audit-yaml.ts";

describe("what a live audit comes to", () => {
  const cut = deployment({ pod: "terminationGracePeriodSeconds: 60", spec: "replicas: 1" });
  const job =
    "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {activeDeadlineSeconds: 60, template: {spec: {terminationGracePeriodSeconds: 5, restartPolicy: Never}}}}\n";

  it("with errors and warnings is False, the worst first", async () => {
    const readiness = spotReadiness(await auditYaml(cut, { platforms: ["gke"] }));

    expect(readiness).toEqual({
      status: "False",
      reason: "FindingsOpen",
      message: "1 grace-cut, 1 single-replica",
      counts: [
        { rule: "grace-cut", severity: "error", count: 1 },
        { rule: "single-replica", severity: "warning", count: 1 },
      ],
    });
  });

  it("without any is True", async () => {
    expect(spotReadiness(await auditYaml(job, { platforms: ["gke"] }))).toMatchObject({
      status: "True",
      reason: "NothingFound",
      message: "Nothing speaks against 1 workloads on Spot nodes",
    });
  });

  it("without workloads is Unknown", async () => {
    expect(spotReadiness(await auditYaml("")).status).toBe("Unknown");
  });
});

it.each(["Cut", "NoGrace", "Blocked"] as const)(
  "a pod that was %s has a rule that foretells it",
  (loss) => {
    expect(ruleList.map((rule) => rule.id)).toContain(ruleOfLoss(loss));
  },
);
