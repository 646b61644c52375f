import { describe, expect, it } from "vitest";
import { addUp, spotReadiness, sumUp } from "../../src/audit/audit.ts";
import { ruleList } from "../../src/audit/rule-list.ts";
import { losses, ruleOfLoss } from "../../src/core/drain/drain-time.ts";
import { auditYaml, deployment } from "./support/audit-yaml.ts";

const cut = deployment({ pod: "terminationGracePeriodSeconds: 60", spec: "replicas: 1" });
const other = deployment({ name: "api", pod: "terminationGracePeriodSeconds: 90" });
const job =
  "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {activeDeadlineSeconds: 60, template: {spec: {terminationGracePeriodSeconds: 5, restartPolicy: Never}}}}\n";

async function sumOf(yaml: string, platforms: readonly string[] = ["gke"]) {
  return sumUp(await auditYaml(yaml, { platforms }));
}

describe("Spot readiness from a live audit", () => {
  it("is False with errors and warnings: what is cut, what was found, and an example", async () => {
    expect(spotReadiness(await sumOf(`${cut}---\n${job}`))).toEqual({
      status: "False",
      reason: "FindingsOpen",
      message:
        "1 of 2 workloads asks for more than the 15 s that gke gives; found: 1 grace-cut, 1 single-replica; " +
        "such as Deployment default/web: Asks for 60 s and gets 15 s on gke at priority 0.",
    });
  });

  it("is True without any", async () => {
    expect(spotReadiness(await sumOf(job))).toEqual({
      status: "True",
      reason: "NothingFound",
      message: "No findings for 1 workload on these nodes.",
    });
  });

  it("says that pods get no time on nodes without graceful shutdown", async () => {
    const { message } = spotReadiness(await sumOf(job, ["aks"]));

    expect(message).toMatch(/^1 of 1 workload gets no time on aks; .*1 no-graceful-shutdown/);
  });

  it("is Unknown without workloads", async () => {
    expect(spotReadiness(await sumOf(""))).toMatchObject({
      status: "Unknown",
      reason: "NoWorkloads",
    });
  });

  it.each([["gke"], ["aks"], ["gke", "eks"]])(
    "of parts adds up to that of the whole on %s",
    async (...platforms) => {
      const whole = await sumOf([cut, other, job].join("---\n"), platforms);
      const parts = [
        await sumOf(cut, platforms),
        await sumOf(other, platforms),
        await sumOf(job, platforms),
      ];
      const sum = parts.reduce(addUp);

      expect({ ...sum, counts: sum.counts.map(gist).sort() }).toEqual({
        ...whole,
        counts: whole.counts.map(gist).sort(),
      });
    },
  );
});

function gist({ rule, severity, count }: { rule: string; severity: string; count: number }) {
  return `${rule} ${severity} ${count}`;
}

it.each(losses)("the loss %s of a pod has a rule that predicts it", (loss) => {
  expect(ruleList.map((rule) => rule.id)).toContain(ruleOfLoss(loss));
});
