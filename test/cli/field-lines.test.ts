import { describe, expect, it } from "vitest";
import { auditRun } from "../audit/support/audit-run.ts";

/** A Deployment in block style: the grace period is on its ninth line. */
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      # as long as a request may take
      terminationGracePeriodSeconds: soon
      containers: []
`;

/** The output of helm template: two objects, each under its comment. */
const helmOutput = `---
# Source: shop/templates/service.yaml
apiVersion: v1
kind: Service
metadata: {name: web}
---
# Source: shop/templates/deployment.yaml
${deployment}`;

const list = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: a}
  spec: {terminationGracePeriodSeconds: 5}
- apiVersion: v1
  kind: Pod
  metadata: {name: b}
  spec:
    terminationGracePeriodSeconds: -5
`;

const pod = (name: string, grace: unknown) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, annotations: { note: '{"terminationGracePeriodSeconds": "x"}' } },
  spec: { containers: [], terminationGracePeriodSeconds: grace },
});

/** Indented by four spaces, as kubectl get -o json prints; each row's comment counts the lines. */
const json = (value: unknown) => JSON.stringify(value, undefined, 4);

describe("a bad field of a manifest is reported with its own line", () => {
  it.each([
    { form: "of a file with one object", text: deployment, line: 9 },
    { form: "of the second document, below comments", text: helmOutput, line: 16 },
    { form: "with Windows line ends", text: helmOutput.replaceAll("\n", "\r\n"), line: 16 },
    { form: "of the second item of a List", text: list, line: 12 },
    // {, apiVersion, kind, metadata {, name, annotations {, note, }, }, spec {, containers, grace.
    { form: "in JSON", text: json(pod("a", "long")), line: 12 },
    // {, kind, items [, then 14 lines of the first pod, and 12 of the second.
    {
      form: "of an item of a List in JSON",
      text: json({ kind: "List", apiVersion: "v1", items: [pod("a", 5), pod("b", 1.5)] }),
      line: 4 + 14 + 12,
    },
    {
      form: "of the second of two JSON values",
      text: `${json(pod("a", 5))}\n${json(pod("b", "long"))}\n`,
      line: 14 + 12,
    },
    {
      form: "in flow-style YAML that starts like JSON",
      text: "{apiVersion: v1, kind: Pod,\n metadata: {name: a},\n spec: {\n  terminationGracePeriodSeconds: x}}\n",
      line: 4,
    },
  ])("$form", async ({ text, line }) => {
    const run = await auditRun({ files: ["-"] }, { "-": text });
    expect(run).toMatchObject({ exit: 2, stdout: "" });
    expect(run.error).toMatch(
      new RegExp(`^Cannot audit -:${line} \\(.*\\): terminationGracePeriodSeconds is `),
    );
  });

  it("or with the object's line if the field is missing", async () => {
    const text =
      "# none\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: p}\n";
    const run = await auditRun({ files: ["p.yaml"] }, { "p.yaml": text });
    expect(run.error).toMatch(/^Cannot audit p\.yaml:2 \(.*\): value is nothing/);
  });

  it("even among 3000 objects", async () => {
    const many = Array.from({ length: 3_000 }, (_, at) =>
      json(pod(`p${at}`, at === 2_999 ? -1 : 5)),
    );
    const run = await auditRun({ files: ["-"] }, { "-": many.join("\n") });
    expect(run.error).toContain(`Cannot audit -:${2_999 * 14 + 12} (Pod default/p2999): `);
  });
});

describe("a bad field of a kubelet's configuration is reported with its own line", () => {
  const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";

  it.each([
    { field: "shutdownGracePeriod: 30", says: "k.yaml:3: shutdownGracePeriod is 30" },
    {
      field: 'featureGates:\n  GracefulNodeShutdown: "off"\n',
      says: 'k.yaml:4: featureGates.GracefulNodeShutdown is the text "off", expected true or false',
    },
    {
      field:
        "shutdownGracePeriodByPodPriority:\n- {priority: 0, shutdownGracePeriodSeconds: 5}\n- {priority: 9}\n",
      says: "k.yaml:5: shutdownGracePeriodByPodPriority[1] is not understood",
    },
    {
      field: "shutdownGracePeriodByPodPriority: {}",
      says: "k.yaml:3: shutdownGracePeriodByPodPriority is an object, expected a list",
    },
  ])("$field", async ({ field, says }) => {
    const texts = { "k.yaml": `${head}${field}`, "web.yaml": deployment };
    const run = await auditRun({ files: ["web.yaml"], platforms: ["kubelet:k.yaml"] }, texts);
    expect(run).toMatchObject({ exit: 2, stdout: "" });
    expect(run.error).toContain(says);
  });
});
