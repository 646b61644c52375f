import { describe, expect, it } from "vitest";
import { fileLimitBytes } from "../../src/audit/input/read-manifests.ts";
import { auditRun } from "../audit/support/audit-run.ts";
import { deployment } from "../audit/support/audit-yaml.ts";

const sixty = deployment({ pod: "terminationGracePeriodSeconds: 60" });
const thirty = deployment({});

describe("invalid input ends the audit with exit code 2 and says why", () => {
  const bomb = [
    "a: &a [x, x, x, x, x, x, x, x, x, x]",
    "b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]",
    "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]",
    "d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]",
  ].join("\n");
  it.each([
    { why: "a broken line", text: "kind: Pod\n  name: [\n", says: "Cannot read bad.yaml:" },
    { why: "an alias bomb", text: bomb, says: "bad.yaml:1: excessive alias count" },
    {
      why: "an unrendered template that parses anyway",
      text: "kind: Deployment\nspec:\n  replicas: {{ .Values.replicas }}\n",
      says: "bad.yaml:3: a key is an object, expected the output of helm template",
    },
    {
      why: "a list as a key",
      text: "kind: Pod\n? [a, b]\n: c\n",
      says: "bad.yaml:2: a key is a list, expected text",
    },
    {
      why: "an alias of an object as a key",
      text: "kind: Pod\na: &a {b: c}\nd: {*a : e}\n",
      says: "bad.yaml:3: a key is an object, expected text",
    },
    {
      why: "items that are not a list",
      text: "apiVersion: v1\nkind: List\nitems: {}\n",
      says: "bad.yaml:3: items is an object, expected a list",
    },
    {
      why: "endless nesting",
      text: `a: ${"[".repeat(50_000)}`,
      says: "Cannot read bad.yaml:1: maximum call stack size exceeded",
    },
    {
      why: "endless nesting in JSON",
      text: `{"apiVersion": "v1", "kind": "Pod", "a": ${"[".repeat(50_000)}${"]".repeat(50_000)}}`,
      says: "Cannot read bad.yaml:1: maximum call stack size exceeded",
    },
    {
      why: "a long text",
      text: "x".repeat(5000),
      says: `${"x".repeat(60)}…", expected a Kubernetes object`,
    },
    {
      why: "an undefined alias",
      text: "a: *b\n",
      says: "Cannot read bad.yaml:1: unresolved alias",
    },
    { why: "text", text: "hello\n", says: 'it is the text "hello", expected a Kubernetes object' },
    {
      why: "a bare list",
      text: "[{kind: Pod}]",
      says: "it is a list, expected a Kubernetes object",
    },
    {
      why: "a List of text",
      text: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod}\n- web\n",
      says: 'bad.yaml:5: items[1] is the text "web", expected a Kubernetes object',
    },
    {
      why: "a chart template",
      text: "kind: Deployment\nmetadata:\n  {{- include 'labels' . }}\n",
      says: "expected the output of helm template",
    },
    { why: "a truncated JSON file", text: '{"kind": "Pod",\n', says: "Cannot read bad.yaml:" },
  ])("$why", async ({ text, says }) => {
    const run = await auditRun({ files: ["bad.yaml"] }, { "bad.yaml": text });

    expect(run).toMatchObject({ exit: 2, stdout: "" });
    expect(run.error).toContain(says);
    expect(run.error.split("\n")).toHaveLength(1);
  });

  it("names every bad file, not only the first", async () => {
    const texts = { "dir/a.yaml": "a: [\n", "dir/b.yaml": "b: ]\n", "dir/c.yaml": sixty };
    const run = await auditRun({ files: ["dir"] }, texts);

    expect(run.error).toMatch(/Cannot read dir\/a\.yaml:.*\nCannot read dir\/b\.yaml:1:/);
    expect(run.stdout).toBe("");
  });

  it("names unreadable files and objects that cannot be audited in one run", async () => {
    const negative = thirty.replace(
      "containers:",
      "terminationGracePeriodSeconds: -1, containers:",
    );
    const run = await auditRun(
      { files: ["a.yaml", "b.yaml"] },
      { "a.yaml": "hello\n", "b.yaml": negative },
    );

    expect(run.exit).toBe(2);
    expect(run.error.split("\n")).toEqual([
      expect.stringMatching(/^Cannot read a\.yaml:1: /),
      expect.stringMatching(/^Cannot audit b\.yaml:4 .*: terminationGracePeriodSeconds is -1, /),
    ]);
  });

  it("a file whose name contains a CI command", async () => {
    const run = await auditRun({ files: ["dir"] }, { "dir/a\n::error::x.yaml": sixty });

    expect(run).toMatchObject({ exit: 2, stdout: "" });
    expect(run.error).toBe(
      "Cannot read dir/a\ufffd::error::x.yaml: its name contains control characters, rename it",
    );
  });

  it("a file over the size limit", async () => {
    const run = await auditRun(
      { files: ["big.yaml"] },
      { "big.yaml": "#".repeat(fileLimitBytes + 1) },
    );

    expect(run).toMatchObject({
      exit: 2,
      error: "Cannot read big.yaml: it has 65 MiB, expected at most 64 MiB",
    });
  });

  it("a file that does not exist", async () => {
    const run = await auditRun({ files: ["lost.yaml"] }, {});

    expect(run.error).toBe("Cannot read lost.yaml: it does not exist, expected a readable file");
  });

  it("an unrendered Helm chart", async () => {
    const texts = { "chart/Chart.yaml": "name: x", "chart/templates/a.yaml": "{{ x }}" };

    expect((await auditRun({ files: ["chart"] }, texts)).error).toBe(
      "Cannot read chart: it is an unrendered Helm chart, pass the output of helm template",
    );
  });

  it.each([
    { platform: "gkee", says: "it is unknown" },
    { platform: "kubelet:5s/30s", says: "more than the 5 s in total" },
    { platform: "kubelet:kubelet.yaml", says: "Cannot read kubelet.yaml: it does not exist" },
  ])("the platform $platform", async ({ platform, says }) => {
    const run = await auditRun(
      { files: ["web.yaml"], platforms: [platform] },
      { "web.yaml": sixty },
    );

    expect(run).toMatchObject({ exit: 2, stdout: "" });
    expect(run.error).toContain(says);
  });

  it.each([
    ["an empty file", { files: ["dir/a.yaml"] }, { "dir/a.yaml": "" }],
    ["a file with only comments", { files: ["dir/a.yaml"] }, { "dir/a.yaml": "# nothing\n---\n" }],
    ["a folder without manifests", { files: ["dir"] }, { "dir/readme.md": "x" }],
    ["values instead of manifests", { files: ["dir/a.yaml"] }, { "dir/a.yaml": "replicas: 3\n" }],
  ])("%s, so that a wrong path does not pass", async (_, { files }, texts) => {
    const run = await auditRun({ files }, texts);

    expect(run).toMatchObject({ exit: 2, stdout: "" });
    expect(run.error).toContain(
      `Cannot audit ${files[0]}: found no Kubernetes objects, expected manifests`,
    );
  });

  it("no input at all", async () => {
    expect((await auditRun({}, {})).error).toContain("there is nothing to read");
  });
});

describe("a note says", () => {
  it.each([
    {
      why: "that a folder is a Kustomize folder",
      texts: { "dir/kustomization.yaml": "", "dir/web.yaml": thirty },
      says: "dir is a Kustomize folder",
    },
    {
      why: "that a subfolder is one",
      texts: { "dir/base/kustomization.yml": "", "dir/base/web.yaml": thirty },
      says: "dir/base is a Kustomize folder",
    },
  ])("$why", async ({ texts, says }) => {
    const run = await auditRun({ files: ["dir"], platforms: ["gke"] }, texts);

    expect(run.stderr).toContain(says);
    expect(run.exit).toBe(0);
  });
});

describe("the audit reads", () => {
  it("an object with 40,000 keys, in time that grows with their number", async () => {
    const keys = Array.from({ length: 40_000 }, (_, at) => `  key${at}: v\n`).join("");
    const text = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n${keys}`;

    expect((await auditRun({ files: ["map.yaml"] }, { "map.yaml": text })).exit).toBe(0);
  }, 15_000);

  it("an anchor that is used many times, with a merge key", async () => {
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
    { why: "documents", text: `${sixty}---\n${thirty}`, found: ["web:1", "web:6"] },
    { why: "a List, each item with its line", text: list, found: ["a:4", "b:7"] },
    { why: "a typed list in JSON", text: json, found: ["a:8", "b:13"] },
    { why: "consecutive JSON values", text: values, found: ["a }{:1", "b:3"] },
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

  it.each([
    ["-f -", { files: ["-"] }, "standard input: found nothing, expected manifests"],
    ["--from -", { from: ["-"] }, "standard input: found nothing, expected the output of kubectl"],
  ])(
    "empty input from %s as a failure of helm or kubectl before the pipe",
    async (_, named, says) => {
      for (const text of ["", "# nothing\n---\n# here\n"]) {
        const run = await auditRun(named, { "-": text });
        expect(run).toMatchObject({ exit: 2, stdout: "" });
        expect(run.error).toContain(`Cannot read ${says}`);
      }
    },
  );

  it("a file with only comments beside another, which it skips", async () => {
    const texts = { "dir/a.yaml": "# nothing\n---\n# here\n", "dir/b.yaml": thirty };
    const run = await auditRun({ files: ["dir"] }, texts);
    expect(run).toMatchObject({ exit: 0, error: "" });
  });

  it("a list without items, as of a cluster without workloads", async () => {
    const text = '{"apiVersion": "v1", "kind": "List", "items": []}';
    const run = await auditRun({ from: ["a.json"] }, { "a.json": text });
    expect(run).toMatchObject({ exit: 0, error: "" });
  });

  it("a directory with its subfolders, without hidden files and other formats", async () => {
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

  it.each([
    { files: ["k8s/a.yaml", "./k8s/a.yaml"] },
    { files: ["k8s", "k8s/a.yaml"] },
    { files: ["k8s/a.yaml", "k8s/"] },
  ])("a file only once, even if it is named twice: $files", async ({ files }) => {
    const run = await auditRun(
      { files, output: "json", failOn: "never" },
      { "k8s/a.yaml": thirty, "./k8s/a.yaml": thirty },
    );
    const { workloads } = JSON.parse(run.stdout) as { workloads: object[] };

    expect(workloads).toHaveLength(1);
  });

  it("an explicit 30 s of grace as a default with --from, and as set with -f", async () => {
    const texts = { "web.yaml": deployment({ pod: "terminationGracePeriodSeconds: 30" }) };
    const json = { output: "json", failOn: "never" } as const;
    const from = await auditRun({ from: ["web.yaml"], ...json }, texts);
    const files = await auditRun({ files: ["web.yaml"], ...json }, texts);

    expect(JSON.parse(from.stdout)).toMatchObject({ workloads: [{ graceSource: "Default" }] });
    expect(JSON.parse(files.stdout)).toMatchObject({ workloads: [{ graceSource: "Set" }] });
  });

  it("an object without a kind, which it skips with a note", async () => {
    const texts = { "dir/values.yaml": "replicas: 3\n", "dir/web.yaml": thirty };
    const run = await auditRun({ files: ["dir"], failOn: "never" }, texts);

    expect(run.exit).toBe(0);
    expect(run.stderr).toContain("dir/values.yaml:1 lacks apiVersion or kind");
  });

  it("a live cluster, if no file is named", async () => {
    const object = { apiVersion: "v1", kind: "Pod", metadata: { name: "a", uid: "u" } };
    const run = await auditRun({ output: "json", failOn: "never" }, {}, [object]);

    expect(JSON.parse(run.stdout)).toMatchObject({
      workloads: [{ name: "a", file: null, line: null }],
    });
  });
});

describe("a duplicate key costs a warning, and the last one counts", () => {
  const twice = deployment({
    pod: "terminationGracePeriodSeconds: 10, terminationGracePeriodSeconds: 600",
  });
  const json = (grace: string) =>
    `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {\n${grace},\n "containers": [{"name": "c"}]}}`;
  const inJson = json('"terminationGracePeriodSeconds": 10,\n"terminationGracePeriodSeconds": 600');

  it.each([
    { why: "in YAML", text: twice, key: "terminationGracePeriodSeconds" },
    { why: "in JSON", text: inJson, key: "terminationGracePeriodSeconds" },
    {
      why: "that JSON writes the same way",
      text: sixty.replace("metadata: {", 'x: {1: a, "1": b}\nmetadata: {'),
      key: "1",
    },
    {
      why: "that a CI system would interpret",
      text: `"x\\n::error::": 1\n"x\\n::error::": 1\n${sixty}`,
      key: "x\ufffd::error::",
    },
  ])("$why", async ({ text, key }) => {
    const run = await auditRun({ files: ["two.yaml"] }, { "two.yaml": text });

    expect(run.exit).not.toBe(2);
    expect(run.stderr).toMatch(/^two\.yaml:\d+: the key /m);
    expect(run.stderr).toContain(`the key ${key} appears twice in one object`);
    expect(run.stdout).toContain(text === twice || text === inJson ? "600 s" : "60 s");
  });

  it("but a kubelet does not start with one in its configuration", async () => {
    const config =
      "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nshutdownGracePeriod: 60s\nshutdownGracePeriod: 90s\n";
    const files = { "a.yaml": sixty, "kubelet.yaml": config };
    const run = await auditRun({ files: ["a.yaml"], platforms: ["kubelet:kubelet.yaml"] }, files);

    expect(run.exit).toBe(2);
    expect(run.error).toContain("kubelet.yaml:4: the key shutdownGracePeriod appears twice");
  });
});
