import { describe, expect, it } from "vitest";
import { auditRun } from "../audit/support/audit-run.ts";
import { deployment } from "../audit/support/audit-yaml.ts";

const sixty = deployment({ pod: "terminationGracePeriodSeconds: 60" });
const thirty = deployment({});
const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n";

describe("the exit code", () => {
  it.each([
    { why: "an error at error", yaml: sixty, failOn: "error", exit: 3 },
    { why: "an error at never", yaml: sixty, failOn: "never", exit: 0 },
    { why: "a warning at error", yaml: thirty, failOn: "error", exit: 0 },
    { why: "a warning at warning", yaml: thirty, failOn: "warning", exit: 3 },
    { why: "an error at warning", yaml: sixty, failOn: "warning", exit: 3 },
    { why: "an information at info", yaml: thirty, failOn: "info", exit: 3 },
    { why: "nothing at info", yaml: configMap, failOn: "info", exit: 0 },
  ] as const)("for $why is $exit", async ({ yaml, failOn, exit }) => {
    const run = await auditRun({ files: ["web.yaml"], failOn }, { "web.yaml": yaml });

    expect(run.exit).toBe(exit);
  });
});

describe("the audit's output", () => {
  it("is the report as JSON, with the fields that scripts rely on", async () => {
    const run = await auditRun(
      { files: ["web.yaml"], output: "json", platforms: ["gke", "kubelet:kubelet.yaml"] },
      {
        "web.yaml": `# a comment first\n\n${sixty}`,
        "kubelet.yaml": "{kind: KubeletConfiguration, shutdownGracePeriod: 90s}",
      },
    );

    expect(JSON.parse(run.stdout)).toMatchObject({
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "AuditReport",
      platforms: [
        {
          name: "gke",
          groups: [
            { priority: 0, seconds: 15 },
            { priority: 2_000_000_000, seconds: 15 },
          ],
          source: "Default",
        },
        { name: "kubelet:kubelet.yaml", source: "File" },
      ],
      workloads: [
        {
          file: "web.yaml",
          line: 3,
          granted: { gke: 15, "kubelet:kubelet.yaml": 60 },
          cut: { gke: true, "kubelet:kubelet.yaml": false },
        },
      ],
      findings: [
        {
          rule: "grace-cut",
          severity: "error",
          platform: "gke",
          object: "Deployment default/web",
          file: "web.yaml",
          line: 3,
        },
        { rule: "no-spread", platform: null },
        { rule: "pdb-missing" },
      ],
      summary: { workloads: 1, cut: { gke: 1, "kubelet:kubelet.yaml": 0 } },
    });
  });

  it("is the same report as YAML, which serves as a baseline", async () => {
    const texts = { "web.yaml": sixty };
    const json = await auditRun({ files: ["web.yaml"], output: "json" }, texts);
    const yaml = await auditRun({ files: ["web.yaml"], output: "yaml" }, texts);
    const again = await auditRun(
      { files: ["web.yaml"], baseline: "b", output: "json" },
      { ...texts, b: yaml.stdout },
    );

    expect(json.stdout).toContain('"grace-cut"');
    expect(JSON.parse(again.stdout)).toMatchObject({ findings: [] });
  });

  it("has its notes on stderr, and -q suppresses them", async () => {
    const loud = await auditRun({ files: ["web.yaml"] }, { "web.yaml": thirty });
    const quiet = await auditRun({ files: ["web.yaml"], quiet: true }, { "web.yaml": thirty });

    expect(loud.stderr).toContain("judged against gke, eks-al2023, eks, aks");
    expect(quiet.stderr).toBe("");
  });
});

describe("a baseline", () => {
  const texts = { "web.yaml": sixty };

  it("is a saved report: its findings do not fail the run, new ones do", async () => {
    const first = await auditRun(
      { files: ["web.yaml"], output: "json", platforms: ["gke"] },
      texts,
    );
    const both = { "web.yaml": `# moved down\n${sixty}`, "b.json": first.stdout };
    const command = { files: ["web.yaml"], baseline: "b.json", platforms: ["gke"] } as const;

    expect((await auditRun({ ...command, failOn: "info" }, both)).exit).toBe(0);
    const worse = both["web.yaml"].replace("replicas: 3", "replicas: 1");
    const run = await auditRun(
      { ...command, failOn: "info", output: "json" },
      { ...both, "web.yaml": worse },
    );
    expect(run.exit).toBe(3);
    expect(JSON.parse(run.stdout)).toMatchObject({
      findings: [{ rule: "single-replica" }],
      known: [{ rule: "grace-cut" }],
    });
  });

  it("of another kind is rejected", async () => {
    const run = await auditRun({ files: ["web.yaml"], baseline: "web.yaml" }, texts);

    expect(run.error).toBe(
      'Cannot read the baseline web.yaml:2: its kind is the text "Deployment", expected a saved AuditReport',
    );
  });
});
