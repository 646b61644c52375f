import { describe, expect, it } from "vitest";
import { type AuditCommand, runAudit } from "../../src/cli/audit.ts";
import { fileLimitBytes } from "../../src/cli/read-manifests.ts";
import { deployment, tableOfFiles } from "../audit/support/audit-yaml.ts";

const sixty = deployment({ pod: "terminationGracePeriodSeconds: 60" });
const thirty = deployment({});

describe("the exit code", () => {
  it.each([
    { why: "an error at error", yaml: sixty, failOn: "error", exit: 3 },
    { why: "an error at never", yaml: sixty, failOn: "never", exit: 0 },
    { why: "a warning at error", yaml: thirty, failOn: "error", exit: 0 },
    { why: "a warning at warning", yaml: thirty, failOn: "warning", exit: 3 },
    { why: "an error at warning", yaml: sixty, failOn: "warning", exit: 3 },
    { why: "an information at info", yaml: thirty, failOn: "info", exit: 3 },
    { why: "nothing at info", yaml: "", failOn: "info", exit: 0 },
  ] as const)("for $why is $exit", async ({ yaml, failOn, exit }) => {
    const run = await auditRun({ files: ["web.yaml"], failOn }, { "web.yaml": yaml });

    expect(run.exit).toBe(exit);
  });
});

describe("input that is not understood ends the run with exit code 2 and one sentence", () => {
  const duplicate = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nkind: Job\n";
  const bomb = [
    "a: &a [x, x, x, x, x, x, x, x, x, x]",
    "b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]",
    "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]",
    "d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]",
  ].join("\n");
  const inJson =
    '{"apiVersion": "v1",\n "kind": "Pod",\n "metadata": {"name": "a",\n  "name": "b"}}';

  it.each([
    { why: "a broken line", text: "kind: Pod\n  name: [\n", says: "Cannot read bad.yaml:" },
    { why: "a key twice", text: duplicate, says: "bad.yaml:4: the key kind is written twice" },
    { why: "a key twice in JSON", text: inJson, says: "bad.yaml:4: the key name is written twice" },
    { why: "an alias bomb", text: bomb, says: "bad.yaml:1: excessive alias count" },
    {
      why: "a key twice that JSON would write alike",
      text: 'kind: Pod\nmetadata:\n  labels: {1: a, "1": b}\n',
      says: "bad.yaml:3: the key 1 is written twice",
    },
    {
      why: "a merge key twice",
      text: "x: &l {a: b}\ny: {<<: *l, <<: *l}\n",
      says: "bad.yaml:2: the key << is written twice",
    },
    {
      why: "items that are no list",
      text: "apiVersion: v1\nkind: List\nitems: {}\n",
      says: "bad.yaml:1: items is an object, a list is wanted",
    },
    {
      why: "nesting without end",
      text: `a: ${"[".repeat(50_000)}`,
      says: "Cannot read bad.yaml:1: maximum call stack size exceeded",
    },
    {
      why: "a long text",
      text: "x".repeat(5000),
      says: `${"x".repeat(60)}…", a Kubernetes object`,
    },
    {
      why: "an alias of nothing",
      text: "a: *b\n",
      says: "Cannot read bad.yaml:1: unresolved alias",
    },
    { why: "text", text: "hello\n", says: 'it is the text "hello", a Kubernetes object is wanted' },
    {
      why: "a bare list",
      text: "[{kind: Pod}]",
      says: "it is a list, a Kubernetes object is wanted",
    },
    {
      why: "a List of text",
      text: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n- web\n",
      says: 'bad.yaml:5: items[1] is the text "web", a Kubernetes object is wanted',
    },
    {
      why: "a chart's template",
      text: "kind: Deployment\nmetadata:\n  {{- include 'labels' . }}\n",
      says: "the output of helm template is wanted",
    },
    { why: "half a JSON file", text: '{"kind": "Pod",\n', says: "Cannot read bad.yaml:" },
  ])("$why", async ({ text, says }) => {
    const run = await auditRun({ files: ["bad.yaml"] }, { "bad.yaml": text });

    expect(run).toMatchObject({ exit: 2, stdout: "" });
    expect(run.error).toContain(says);
    expect(run.error.split("\n")).toHaveLength(1);
  });

  it("names every bad file, not only the first", async () => {
    const texts = { "dir/a.yaml": "a: [\n", "dir/b.yaml": duplicate, "dir/c.yaml": sixty };
    const run = await auditRun({ files: ["dir"] }, texts);

    expect(run.error).toMatch(/Cannot read dir\/a\.yaml:.*\nCannot read dir\/b\.yaml:4:/);
    expect(run.stdout).toBe("");
  });

  it("a file over the limit", async () => {
    const run = await auditRun(
      { files: ["big.yaml"] },
      { "big.yaml": "#".repeat(fileLimitBytes + 1) },
    );

    expect(run).toMatchObject({
      exit: 2,
      error: "Cannot read big.yaml: it has 65 MiB, at most 64 MiB are wanted",
    });
  });

  it("a file that is not there", async () => {
    const run = await auditRun({ files: ["lost.yaml"] }, {});

    expect(run.error).toBe("Cannot read lost.yaml: it does not exist, a readable file is wanted");
  });

  it("a Helm chart that is not rendered", async () => {
    const texts = { "chart/Chart.yaml": "name: x", "chart/templates/a.yaml": "{{ x }}" };

    expect((await auditRun({ files: ["chart"] }, texts)).error).toBe(
      "Cannot read chart: it is a Helm chart that is not rendered, the output of helm template is wanted",
    );
  });

  it.each([
    { platform: "gkee", says: "it is unknown" },
    { platform: "kubelet:5s/30s", says: "more than the 5 s in all" },
    { platform: "kubelet:kubelet.yaml", says: "Cannot read kubelet.yaml: it does not exist" },
  ])("the platform $platform", async ({ platform, says }) => {
    const run = await auditRun(
      { files: ["web.yaml"], platforms: [platform] },
      { "web.yaml": sixty },
    );

    expect(run).toMatchObject({ exit: 2, stdout: "" });
    expect(run.error).toContain(says);
  });

  it("nothing named at all", async () => {
    expect((await auditRun({}, {})).error).toContain("neither a file nor a cluster is named");
  });
});

describe("input of any form is read", () => {
  it("an object of very many keys, in time that grows with their number", async () => {
    const keys = Array.from({ length: 40_000 }, (_, at) => `  key${at}: v\n`).join("");
    const text = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n${keys}`;

    expect((await auditRun({ files: ["map.yaml"] }, { "map.yaml": text })).exit).toBe(0);
  }, 15_000);

  it("an anchor that is used many times, and a merge key", async () => {
    const uses = Array.from({ length: 500 }, () => "*grace").join(", ");
    const annotations = `metadata: {name: p, labels: &l {a: b}, uses: [${uses}]}`;
    const text = `apiVersion: v1\nkind: Pod\nx: &grace 60\n${annotations}\nspec: {<<: *l, terminationGracePeriodSeconds: *grace}\n`;
    const run = await auditRun({ files: ["p.yaml"], output: "json" }, { "p.yaml": text });

    expect(JSON.parse(run.stdout).workloads).toMatchObject([{ name: "p", wantedGraceSeconds: 60 }]);
  });

  const list = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: a}
- apiVersion: v1
  kind: Pod
  metadata: {name: b}
`;
  const json = JSON.stringify(
    {
      kind: "PodList",
      apiVersion: "v1",
      metadata: { note: 'a "quoted\\" { [ brace' },
      items: [{ metadata: { name: "a" } }, { metadata: { name: "b", labels: { items: "[{" } } }],
    },
    null,
    1,
  );

  const pod = (name: string) =>
    `{"apiVersion": "v1", "kind": "Pod",\n "metadata": {"name": "${name}"}}`;
  const values = `${pod("a }{")}\n${pod("b")}\n`;

  it.each([
    { why: "nothing", text: "", found: [] },
    { why: "comments", text: "# nothing\n---\n# here\n", found: [] },
    { why: "documents", text: `${sixty}---\n${thirty}`, found: ["web:1", "web:6"] },
    { why: "a List, each item with its line", text: list, found: ["a:4", "b:7"] },
    { why: "a typed list in JSON", text: json, found: ["a:8", "b:13"] },
    { why: "JSON values one after the other", text: values, found: ["a }{:1", "b:3"] },
    { why: "a byte order mark", text: `\uFEFF${sixty}`, found: ["web:1"] },
    {
      why: "Windows line ends",
      text: `${sixty}---\n${sixty}`.replaceAll("\n", "\r\n"),
      found: ["web:1", "web:6"],
    },
    {
      why: "anchors and merge keys",
      text: "x: &x {name: a}\napiVersion: v1\nkind: Pod\nmetadata: {<<: *x}\n",
      found: ["a:1"],
    },
  ])("$why", async ({ text, found }) => {
    const run = await auditRun({ files: ["-"], output: "json", failOn: "never" }, { "-": text });
    const { workloads } = JSON.parse(run.stdout) as {
      workloads: { name: string; line: number; file: string }[];
    };

    expect(workloads.map((one) => `${one.name}:${one.line}`)).toEqual(found);
    for (const one of workloads) expect(one.file).toBe("-");
  });

  it("a directory with what is below it, but not hidden files and other formats", async () => {
    const run = await auditRun(
      { files: ["k8s/"], output: "json", failOn: "never" },
      {
        "k8s/b/two.yml": sixty,
        "k8s/a.yaml": thirty,
        "k8s/.git/x.yaml": "[",
        "k8s/notes.md": "[",
      },
    );
    const { workloads } = JSON.parse(run.stdout) as { workloads: { file: string }[] };

    expect(workloads.map((one) => one.file)).toEqual(["k8s/a.yaml", "k8s/b/two.yml"]);
  });

  it("a recording by --from has the server's defaults in it, a manifest has not", async () => {
    const texts = { "web.yaml": deployment({ pod: "terminationGracePeriodSeconds: 30" }) };
    const json = { output: "json", failOn: "never" } as const;
    const from = await auditRun({ from: ["web.yaml"], ...json }, texts);
    const files = await auditRun({ files: ["web.yaml"], ...json }, texts);

    expect(JSON.parse(from.stdout)).toMatchObject({ workloads: [{ graceSource: "Default" }] });
    expect(JSON.parse(files.stdout)).toMatchObject({ workloads: [{ graceSource: "Set" }] });
  });

  it("an object without a kind is passed over, and that is said", async () => {
    const run = await auditRun({ files: ["values.yaml"] }, { "values.yaml": "replicas: 3\n" });

    expect(run.exit).toBe(0);
    expect(run.stderr).toContain("values.yaml:1 has no apiVersion and kind");
  });

  it("a live cluster, where no file is named", async () => {
    const object = { apiVersion: "v1", kind: "Pod", metadata: { name: "a", uid: "u" } };
    const run = await auditRun({ output: "json", failOn: "never" }, {}, [object]);

    expect(JSON.parse(run.stdout)).toMatchObject({
      workloads: [{ name: "a", file: null, line: null }],
    });
  });
});

describe("what is printed", () => {
  it("is the report as JSON, with the fields that others script against", async () => {
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

  it("is the same as YAML", async () => {
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

  it("notes go to stderr, and -q keeps them back", async () => {
    const loud = await auditRun({ files: ["web.yaml"] }, { "web.yaml": thirty });
    const quiet = await auditRun({ files: ["web.yaml"], quiet: true }, { "web.yaml": thirty });

    expect(loud.stderr).toContain("judged against gke, eks-al2023, eks, aks");
    expect(quiet.stderr).toBe("");
  });
});

describe("a baseline", () => {
  const texts = { "web.yaml": sixty };

  it("is a saved report: what it holds does not fail the run, what is new does", async () => {
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

  it("of another kind is refused", async () => {
    const run = await auditRun({ files: ["web.yaml"], baseline: "web.yaml" }, texts);

    expect(run.error).toBe(
      'Cannot read the baseline web.yaml: its kind is the text "Deployment", a saved AuditReport is wanted',
    );
  });
});

/** Runs the command on files of a table; the error's text where it was refused. */
async function auditRun(
  command: Partial<AuditCommand>,
  texts: Readonly<Record<string, string>>,
  live?: readonly unknown[],
) {
  const run = { exit: -1, stdout: "", stderr: "", error: "" };
  const io = {
    ...tableOfFiles(texts),
    stdout: (text: string) => {
      run.stdout += text;
    },
    stderr: (text: string) => {
      run.stderr += text;
    },
    isTty: false,
    colour: false,
    readCluster: live && (async () => ({ objects: live, readBudgets: new Map() })),
  };
  const defaults = {
    files: [],
    from: [],
    platforms: [],
    failOn: "error",
    output: "table",
  } as const;
  try {
    run.exit = await runAudit({ ...defaults, version: "1.2.3", ...command }, io);
  } catch (error) {
    if (!(error instanceof Error && "exitCode" in error)) throw error;
    run.exit = Number(error.exitCode);
    run.error = error.message;
  }
  return run;
}
