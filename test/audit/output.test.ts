import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { auditTable, githubAnnotations, sarifLog } from "../../src/audit/audit-output.ts";
import { readBaseline } from "../../src/audit/report.ts";
import { auditYaml, deployment } from "./support/audit-yaml.ts";

const web = deployment({ pod: "terminationGracePeriodSeconds: 60", spec: "replicas: 1" });
const annotated = web.replace(
  "metadata: {name: web}",
  'metadata: {name: web, annotations: {lastcall.dev/audit-ignore: "single-replica: it is a batch reader"}}',
);

describe("the audit table", () => {
  it("shows the grace that each workload wants and gets, worst first", async () => {
    const yaml = `${deployment({ name: "idle" })}---\n${web}`;
    const report = await auditYaml(yaml, { platforms: ["gke", "eks-al2023", "aks"] });

    expect(auditTable(report, { colour: "Off" }).split("\n").slice(0, 4)).toEqual([
      "WORKLOAD                 ASKS           gke      eks-al2023  aks",
      "budget of a regular pod                 15s      2m          none",
      "Deployment default/web   60s            15s cut  60s         0s cut",
      "Deployment default/idle  30s (default)  15s cut  30s         0s cut",
    ]);
  });

  it("ends with the counts", async () => {
    const report = await auditYaml(annotated, { platforms: ["gke"] });

    expect(auditTable(report, { colour: "Off" })).toMatch(
      /\n\n1 workload: 1 error, 0 warnings, 0 info, 1 ignored\n$/,
    );
  });

  it("has escape codes only with color", async () => {
    const report = await auditYaml(web, { platforms: ["gke"] });

    expect(auditTable(report, { colour: "Off" })).not.toContain("\u001b");
    expect(auditTable(report, { colour: "On" })).toContain("\u001b[31m15s cut");
  });

  it("fits one screen if required, and says what it left out", async () => {
    const many = Array.from({ length: 200 }, (_, at) => deployment({ name: `web-${at}` }));
    const report = await auditYaml(many.join("---\n"), { platforms: ["gke"] });
    const lines = auditTable(report, { colour: "Off", rows: 18 }).split("\n");

    expect(lines.length).toBeLessThanOrEqual(50);
    expect(lines).toContain("… and 182 more workloads (-o json has all)");
  });

  it("lists the kinds that were not judged, and static pods separately", async () => {
    const made = (apiVersion: string, kind: string) =>
      `{apiVersion: ${apiVersion}, kind: ${kind}, metadata: {name: m}}\n---\n`;
    const fixed =
      "{apiVersion: v1, kind: Pod, metadata: {name: p, ownerReferences: [{kind: Node, name: n1, controller: true}]}, spec: {}}\n";
    const yaml =
      made("monitoring.coreos.com/v1", "Prometheus") +
      made("monitoring.coreos.com/v1", "ServiceMonitor") +
      made("cert-manager.io/v1", "Certificate") +
      made("dapr.io/v1alpha1", "Configuration") +
      made("networking.istio.io/v1", "VirtualService") +
      made("kafka.strimzi.io/v1", "Kafka") +
      fixed;
    const lines = auditTable(await auditYaml(yaml, { platforms: ["gke"] }), { colour: "Off" });

    expect(lines.split("\n").slice(-3, -1)).toEqual([
      "Not judged: 2 custom resources (Kafka, Prometheus), because the input does not show the pods that they create",
      "Not judged: 1 static pod, which only a kubelet terminates",
    ]);
  });

  it("says so if there are no workloads", async () => {
    expect(auditTable(await auditYaml(""), { colour: "Off" })).toMatch(/^No workloads\.\n/);
  });
});

describe("hostile text in a manifest", () => {
  const hostile = JSON.stringify("x\n::error::pwned\u001b[2J\u009b31m\r\u2028");
  const yaml = `apiVersion: apps/v1
kind: Deployment
metadata: {name: ${hostile}, namespace: ${hostile}, annotations: {lastcall.dev/audit-ignore: ${hostile}}}
spec:
  replicas: 1
  template:
    spec:
      priorityClassName: ${hostile}
      terminationGracePeriodSeconds: 60
      containers:
      - {name: ${hostile}, command: [sh, -c, "a; b"], volumeMounts: [{name: ${hostile}, mountPath: /x}]}
      volumes: [{name: ${hostile}, hostPath: {path: ${hostile}}}]
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: ${hostile}, namespace: ${hostile}}, spec: {maxUnavailable: 0, selector: {}}}
---
{apiVersion: example.com/v1, kind: ${hostile}, metadata: {name: ${hostile}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p, ownerReferences: [{kind: ${hostile}, name: ${hostile}, controller: true}]}, spec: {}}
`;

  it("neither controls a terminal nor starts a line of its own", async () => {
    const report = await auditYaml(yaml, { platforms: ["gke"] });
    const printed = [
      auditTable(report, { colour: "Off" }),
      githubAnnotations(report),
      ...report.notes,
    ];

    for (const text of printed) {
      expect(text).not.toMatch(/^::error::pwned/m);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be there
      expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028]/);
    }
    expect(new Set(report.findings.map(({ rule }) => rule))).toEqual(
      new Set([
        ...["grace-cut", "pdb-blocks-forever", "single-replica", "local-data"],
        ...["exec-sigterm-lost"],
      ]),
    );
  });
});

describe("GitHub annotations", () => {
  it("have one workflow command per finding, with file and line", async () => {
    const report = await auditYaml(web, { platforms: ["gke"] });

    expect(githubAnnotations(report).split("\n")[0]).toBe(
      "::error file=web.yaml,line=4,title=grace-cut::Deployment default/web: Asks for 60 s and gets 15 s on gke at priority 0. Finish within 15 s and set terminationGracePeriodSeconds to at most that, or raise the node's shutdownGracePeriod",
    );
  });

  it("escape characters that would end a property or the command", async () => {
    const report = await auditYaml(web, { platforms: ["gke"] });
    const [finding] = report.findings;
    if (finding === undefined) throw new Error("no finding");
    const odd = { ...finding, file: "a,b:c.yaml", message: "50 %\nand more" };

    expect(githubAnnotations({ ...report, findings: [odd] })).toMatch(
      /^::error file=a%2Cb%3Ac\.yaml,line=4,title=grace-cut::Deployment default\/web: 50 %25%0Aand more\. /,
    );
  });

  it.each([
    { file: "web.yaml", place: "file=web.yaml,line=1," },
    { file: "-", place: "line=1," },
    { file: null, place: "" },
  ])("for $file name the known place", async ({ file, place }) => {
    const report = await auditYaml(web, { platforms: ["aks"] });
    const findings = report.findings.map((one) => ({ ...one, file }));
    const line = githubAnnotations({ ...report, findings })
      .split("\n")
      .find((one) => one.includes("no-graceful"));

    expect(line).toMatch(
      new RegExp(`^::warning ${place}title=no-graceful-shutdown::Platform aks: `),
    );
  });
});

/** The OASIS schema is draft 04, but uses nothing that differs in draft 07 except `id`. */
function sarifValidator() {
  const file = new URL("../data/sarif/sarif-schema-2.1.0.json", import.meta.url);
  const { $schema: _, id: _id, ...schema } = JSON.parse(readFileSync(file, "utf8"));
  return new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema);
}

const validateSarif = sarifValidator();

function faultsOf(log: unknown): unknown {
  validateSarif(JSON.parse(JSON.stringify(log)));
  return validateSarif.errors;
}

describe("the SARIF log", () => {
  it("is valid against the schema", async () => {
    const saved = await auditYaml(web, { platforms: ["gke"] });
    const baseline = readBaseline(saved, () => "saved.json");
    for (const yaml of ["", web, annotated, `${web}---\n${deployment({})}`]) {
      const report = await auditYaml(yaml, { platforms: ["gke", "aks"], baseline });
      const open = await auditYaml(yaml, { platforms: ["gke", "aks"] });
      for (const one of [report, open])
        expect(faultsOf(sarifLog(one, { version: "1.2.3" }))).toBe(null);
    }
  });

  it.each([
    { field: "level", value: "fatal" },
    { field: "ruleIndex", value: -2 },
    { field: "colour", value: "red" },
  ])("with the $field $value would be invalid", async ({ field, value }) => {
    const log = sarifLog(await auditYaml(web, { platforms: ["gke"] }), { version: "1.2.3" }) as {
      runs: [{ results: Record<string, unknown>[] }];
    };
    Object.assign(log.runs[0].results[0] ?? {}, { [field]: value });

    expect(faultsOf(log)).not.toBe(null);
  });

  it("refers to file and line, and names its rule", async () => {
    const log = sarifLog(await auditYaml(web, { platforms: ["gke"] }), { version: "1.2.3" });

    expect(log).toMatchObject({
      version: "2.1.0",
      runs: [
        {
          tool: { driver: { name: "lastcall", version: "1.2.3" } },
          results: [
            {
              ruleId: "grace-cut",
              ruleIndex: 0,
              level: "error",
              locations: [
                {
                  physicalLocation: {
                    artifactLocation: { uri: "web.yaml" },
                    region: { startLine: 4 },
                  },
                },
              ],
            },
            { ruleId: "single-replica", level: "warning" },
          ],
        },
      ],
    });
  });

  it.each([
    { file: "a b/web.yaml", uri: "a%20b/web.yaml" },
    { file: "./web.yaml", uri: "web.yaml" },
    // Code scanning rejects the whole log without a location, so standard input gets a name.
    { file: "-", uri: "stdin" },
  ])("refers to $file as $uri", async ({ file, uri }) => {
    const report = await auditYaml(web, { platforms: ["gke"] });
    const findings = report.findings.map((one) => ({ ...one, file, fieldLine: 7 }));
    const log = sarifLog({ ...report, findings }, { version: "1.2.3" });

    expect(faultsOf(log)).toBe(null);
    expect(log).toMatchObject({
      runs: [
        {
          results: findings.map(() => ({
            locations: [
              {
                physicalLocation: { artifactLocation: { uri }, region: { startLine: 7 } },
                logicalLocations: [{ fullyQualifiedName: "Deployment default/web" }],
              },
            ],
          })),
        },
      ],
    });
  });

  it("names only the object if a live cluster was read", async () => {
    const report = await auditYaml(web, { platforms: ["gke"] });
    const findings = report.findings.map((one) => ({ ...one, file: null, line: null }));

    expect(sarifLog({ ...report, findings }, { version: "1.2.3" })).toMatchObject({
      runs: [
        {
          results: findings.map(() => ({
            locations: [
              {
                logicalLocations: [
                  { fullyQualifiedName: "Deployment default/web", kind: "resource" },
                ],
              },
            ],
          })),
        },
      ],
    });
  });

  it("refers to the first affected workload for a finding about a platform", async () => {
    const stable = deployment({
      name: "a",
      pod: "nodeSelector: {karpenter.sh/capacity-type: on-demand}",
    });
    const report = await auditYaml(`${stable}---\n${web}`, { platforms: ["aks"] });
    const linesBefore = `${stable}---\n`.split("\n").length - 1;

    expect(sarifLog(report, { version: "1.2.3" })).toMatchObject({
      runs: [
        {
          results: expect.arrayContaining([
            expect.objectContaining({
              ruleId: "no-graceful-shutdown",
              locations: [
                expect.objectContaining({
                  physicalLocation: {
                    artifactLocation: { uri: "web.yaml" },
                    region: { startLine: linesBefore + 1 },
                  },
                }),
              ],
            }),
          ]),
        },
      ],
    });
  });

  it("shows a finding that an annotation ignores as suppressed, with the reason", async () => {
    const log = sarifLog(await auditYaml(annotated, { platforms: ["gke"] }), { version: "1.2.3" });

    expect(log).toMatchObject({
      runs: [
        {
          results: [
            { ruleId: "grace-cut" },
            {
              ruleId: "single-replica",
              suppressions: [{ kind: "inSource", justification: "it is a batch reader" }],
            },
          ],
        },
      ],
    });
  });
});

describe("the ignore annotation", () => {
  const ignoring = (text: string) =>
    web.replace(
      "metadata: {name: web}",
      `metadata: {name: web, annotations: {lastcall.dev/audit-ignore: ${JSON.stringify(text)}}}`,
    );

  it.each([
    { text: "single-replica: a reader", left: ["grace-cut"] },
    { text: "grace-cut: it may die; single-replica: as said: a reader", left: [] },
    { text: "grace-cut: it may die\nsingle-replica: a reader", left: [] },
    { text: "grace-cut: it may die; twice", left: ["single-replica"] },
    { text: "single-replica", left: ["grace-cut", "single-replica"] },
    { text: "single-replica:  ", left: ["grace-cut", "single-replica"] },
    { text: "no-such-rule: why not", left: ["grace-cut", "single-replica"] },
  ])("$text leaves $left", async ({ text, left }) => {
    const { findings } = await auditYaml(ignoring(text), { platforms: ["gke"] });

    expect(findings.map((one) => one.rule)).toEqual(left);
  });

  it("also works on the pod template", async () => {
    const yaml = web.replace(
      "template: {metadata: {",
      'template: {metadata: {annotations: {lastcall.dev/audit-ignore: "grace-cut: fine"}, ',
    );
    const report = await auditYaml(yaml, { platforms: ["gke"] });

    expect(report.ignored).toMatchObject([{ rule: "grace-cut", reason: "fine" }]);
  });

  it.each([
    { text: "single-replica", says: "ignores single-replica without a reason" },
    { text: "no-such-rule: why not", says: 'names the unknown rule "no-such-rule"' },
  ])("is reported in a note if it ignores nothing: $text", async ({ text, says }) => {
    const { notes } = await auditYaml(ignoring(text), { platforms: ["gke"] });

    expect(notes.join("\n")).toContain(`web.yaml:1 (Deployment default/web) ${says}`);
  });

  it("is reported in a note on other objects than workloads, too", async () => {
    const service =
      '{apiVersion: v1, kind: Service, metadata: {name: s, annotations: {lastcall.dev/audit-ignore: "lb-delay: fine"}}}\n';
    const { notes } = await auditYaml(service, { platforms: ["gke"] });

    expect(notes).toEqual([
      'The ignore annotation of web.yaml:1 (Service default/s) names the unknown rule "lb-delay"',
    ]);
  });
});
