import { describe, expect, it } from "vitest";
import { auditTable, githubAnnotations, sarifLog } from "../../src/audit/audit-output.ts";
import type { AuditReport } from "../../src/audit/report.ts";
import { ruleList } from "../../src/audit/rule-list.ts";
import { auditRun } from "./support/audit-run.ts";
import { auditYaml, deployment } from "./support/audit-yaml.ts";

const long = "terminationGracePeriodSeconds: 600";
const toleration = "{key: cloud.google.com/gke-spot, operator: Exists, effect: NoSchedule}";
const term = (one: string) =>
  `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [${one}]}]}}}`;

const scoped = (yaml: string, scope: "Named" | "Possible") =>
  auditRun({ files: ["w.yaml"], platforms: ["gke"], scope, output: "json" }, { "w.yaml": yaml });

describe("a workload is judged in the scope Named if it", () => {
  it.each([
    ["says nothing", "", false],
    ["selects Spot nodes", "nodeSelector: {cloud.google.com/gke-spot: 'true'}", true],
    ["selects other nodes", "nodeSelector: {disk: ssd}", false],
    ["selects nodes that are not Spot", "nodeSelector: {karpenter.sh/capacity-type: x}", false],
    ["tolerates their taint", `tolerations: [${toleration}]`, true],
    ["tolerates everything", "tolerations: [{operator: Exists}]", false],
    [
      "requires them by affinity",
      term("{key: karpenter.sh/capacity-type, operator: In, values: [on-demand, spot]}"),
      true,
    ],
    [
      "excludes them by affinity",
      term("{key: karpenter.sh/capacity-type, operator: NotIn, values: [spot]}"),
      false,
    ],
  ])("%s: %s", async (_, pod, isJudged) => {
    const yaml = deployment({ pod: [long, pod].filter(Boolean).join(", ") });
    const { exit, stdout } = await scoped(yaml, "Named");
    expect(exit).toBe(isJudged ? 3 : 0);
    // What it gets is in the report all the same.
    expect(JSON.parse(stdout).workloads).toMatchObject([{ cut: { gke: true } }]);
  });
});

describe("the scope", () => {
  const both = `${deployment({ pod: `${long}, tolerations: [${toleration}]` })}---\n${deployment({ name: "kafka", pod: long })}`;

  it("is Possible unless another is given, and may be Named", async () => {
    const found = async (scope?: "Named" | "Possible") => {
      const run = await auditRun(
        { files: ["w.yaml"], platforms: ["gke"], output: "json", scope },
        { "w.yaml": both },
      );
      const { findings } = JSON.parse(run.stdout) as {
        findings: readonly { rule: string; object: string }[];
      };
      return findings.filter(({ rule }) => rule === "grace-cut").map(({ object }) => object);
    };
    expect(await found()).toEqual(["Deployment default/web", "Deployment default/kafka"]);
    expect(await found("Possible")).toEqual(await found());
    expect(await found("Named")).toEqual(["Deployment default/web"]);
  });

  describe("Named marks what it leaves out", () => {
    const runIn = async (
      output: "table" | "json" | "sarif" | "github",
      scope?: "Named" | "Possible",
    ) => {
      const asked = { files: ["w.yaml"], platforms: ["gke"], scope, output };
      return (await auditRun(asked, { "w.yaml": both })).stdout;
    };

    it("in JSON, at each workload and in the summary", async () => {
      const report = JSON.parse(await runIn("json", "Named")) as AuditReport;
      expect(report.workloads).toMatchObject([
        { name: "web", outOfScope: false },
        { name: "kafka", outOfScope: true },
      ]);
      expect(report.summary).toMatchObject({ workloads: 2, outOfScope: 1 });
      const possible = JSON.parse(await runIn("json")) as AuditReport;
      expect(possible.workloads.map((one) => one.outOfScope)).toEqual([false, false]);
      expect(possible.summary.outOfScope).toBe(0);
    });

    it("in SARIF, as a property and a note of the run", async () => {
      const { runs } = JSON.parse(await runIn("sarif", "Named"));
      expect(runs[0].properties).toEqual({ outOfScope: ["Deployment default/kafka"] });
      expect(runs[0].invocations).toEqual([
        {
          executionSuccessful: true,
          toolExecutionNotifications: [
            {
              level: "note",
              message: {
                text: "1 of 2 workloads names Spot nodes, and only such are judged; --scope Possible judges all",
              },
            },
          ],
        },
      ]);
      const { runs: all } = JSON.parse(await runIn("sarif"));
      expect(all[0]).not.toHaveProperty("properties");
    });

    it("for GitHub, as one notice", async () => {
      const notices = (await runIn("github", "Named")).match(/^::notice title=out-of-scope.*$/gm);
      expect(notices).toEqual([
        "::notice title=out-of-scope::1 of 2 workloads was not judged, because it names no Spot nodes: Deployment default/kafka. Judge all with --scope Possible",
      ]);
      expect(await runIn("github")).not.toContain("out-of-scope");
    });

    it("in the table, which then shows no alarm for it", async () => {
      const table = await runIn("table", "Named");
      expect(table).toMatch(/^Deployment default\/kafka .* {2}out of scope$/m);
      expect(table).toMatch(/\n2 workloads \(1 out of scope\): /);
      expect(await runIn("table")).not.toContain("out of scope");
    });
  });

  it("says on stderr how many workloads it judges, and without a platform how to change it", async () => {
    const told = async (more: object) =>
      (await auditRun({ files: ["w.yaml"], ...more }, { "w.yaml": both })).stderr;
    expect(await told({ scope: "Named", platforms: ["gke"] })).toBe(
      "1 of 2 workloads names Spot nodes, and only such are judged; --scope Possible judges all\n",
    );
    expect(await told({})).toContain(
      "1 of 2 workloads names Spot nodes; for a cluster with other nodes, too, --scope Named judges only such\n",
    );
    expect(await told({ platforms: ["gke"] })).toBe("");
  });

  it("Named leaves out load balancers and gangs without a workload that names Spot nodes", async () => {
    const service =
      "{apiVersion: v1, kind: Service, metadata: {name: s, annotations: {service.beta.kubernetes.io/aws-load-balancer-type: external}}, spec: {type: LoadBalancer, selector: {app: web}}}\n";
    const jobSet = (pod: string) =>
      `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: train}, spec: {replicatedJobs: [{name: a, template: {spec: {parallelism: 4, template: {spec: {${pod}}}}}}]}}\n`;
    const rules = async (yaml: string) => {
      const { stdout } = await scoped(yaml, "Named");
      const { findings } = JSON.parse(stdout) as { findings: readonly { rule: string }[] };
      return findings.map(({ rule }) => rule);
    };
    const spot = `tolerations: [${toleration}]`;
    expect(await rules(`${deployment({})}---\n${service}`)).not.toContain("lb-delay-over-notice");
    expect(await rules(`${deployment({ pod: spot })}---\n${service}`)).toContain(
      "lb-delay-over-notice",
    );
    expect(await rules(jobSet("restartPolicy: Never"))).toEqual([]);
    expect(await rules(jobSet(spot))).toContain("gang-on-spot");
  });
});

describe("a finding on several platforms", () => {
  const report = () => auditYaml(deployment({ pod: long }));

  it("is told once, with the list", async () => {
    const cuts = githubAnnotations(await report())
      .split("\n")
      .filter((line) => line.includes("title=grace-cut"));
    expect(cuts).toHaveLength(1);
    expect(cuts[0]).toContain(
      "Asks for 600 s and gets 15 s on gke at priority 0; also on eks-al2023, eks and aks. ",
    );
    const table = auditTable(await report(), { colour: "Off" });
    expect(table).toContain("error grace-cut on gke, eks-al2023, eks, aks (1)\n");
    expect(table).toMatch(/\n1 workload: 1 error, /);
    const log = JSON.stringify(sarifLog(await report(), { version: "1" }));
    expect(log.match(/"ruleId":"grace-cut"/g)).toHaveLength(1);
  });

  it("is told for each copy of an object, at its place", async () => {
    const copies = await auditYaml([long, long].map((pod) => deployment({ pod })).join("---\n"));
    const table = auditTable(copies, { colour: "Off" });

    expect(table).toMatch(/error grace-cut on gke, eks-al2023, eks, aks \(2\)\n.*web.yaml:/);
    expect(table).not.toContain("also on gke");
    expect(githubAnnotations(copies).match(/title=grace-cut/g)).toHaveLength(2);
  });

  it("is one finding for each in JSON, as scripts expect it", async () => {
    const { findings, summary } = await report();
    const cuts = findings.filter(({ rule }) => rule === "grace-cut");
    expect(cuts.map(({ platform }) => platform)).toEqual(["gke", "eks-al2023", "eks", "aks"]);
    expect(summary.findings.error).toBe(4);
  });
});

describe("the line of a finding", () => {
  const yaml = `apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    replicas: 1
    template:
      metadata: {labels: {app: web}}
      spec:
        terminationGracePeriodSeconds: 60
        initContainers:
        - name: proxy
          restartPolicy: Always
          lifecycle:
            preStop: {sleep: {seconds: 60}}
        containers:
        - name: web
          command: [sh, -c, "./migrate && ./server"]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  maxUnavailable: 0
`;
  it.each([
    ["grace-cut", "terminationGracePeriodSeconds"],
    ["prestop-over-grace", "preStop:"],
    ["exec-sigterm-lost", "command:"],
    ["single-replica", "replicas:"],
    ["pdb-blocks-forever", "maxUnavailable:"],
  ])("of %s is that of its field %s", async (rule, field) => {
    const report = await auditYaml(yaml, { platforms: ["gke"] });
    const line = yaml.split("\n").findIndex((one) => one.includes(field)) + 1;
    const found = report.findings.find((one) => one.rule === rule);
    expect(found).toMatchObject({ fieldLine: line });
    const inFile = `file=web.yaml,line=${line},title=${rule}::`;
    expect(githubAnnotations(report)).toContain(inFile);
    // The line of the object is pinned.
    expect(found?.line).toBe(rule.startsWith("pdb") ? 22 : 4);
  });
});

it("a rule of the SARIF log has the address of its page, if the docs are published", async () => {
  const report = await auditYaml(deployment({}), { platforms: ["gke"] });
  const docsUrl = "https://docs.example.com/lastcall/";
  const helpUri = "https://docs.example.com/lastcall/audit/grace-cut.md";
  expect(sarifLog(report, { version: "1", docsUrl })).toMatchObject({
    runs: [
      {
        tool: {
          driver: { rules: [{ id: "grace-cut", helpUri }, ...Array(ruleList.length - 1).fill({})] },
        },
      },
    ],
  });
  expect(JSON.stringify(sarifLog(report, { version: "1" }))).not.toContain("helpUri");
});

it("a rule of the SARIF log has in itself what code scanning shows, without an address", async () => {
  const log = sarifLog(await auditYaml(deployment({}), { platforms: ["gke"] }), { version: "1" });
  const { rules } = (log as SarifLog).runs[0].tool.driver;
  expect(rules.map(({ id }) => id)).toEqual(ruleList.map(({ id }) => id));
  for (const [place, { title, why, fix, whenNotToUse }] of ruleList.entries()) {
    const { shortDescription, fullDescription, help } = rules[place] ?? {};
    expect(shortDescription?.text.toLowerCase()).toBe(title.toLowerCase());
    expect(fullDescription?.text).toBe(why);
    for (const text of [why, fix, whenNotToUse]) expect(help?.markdown).toContain(text);
  }
});

interface SarifLog {
  readonly runs: readonly [{ readonly tool: { readonly driver: { readonly rules: SarifRule[] } } }];
}

interface SarifRule {
  readonly id: string;
  readonly shortDescription: { readonly text: string };
  readonly fullDescription: { readonly text: string };
  readonly help: { readonly markdown: string };
}
