/**
 * `lastcall migrate` on a real API server with the killer's own manifests, nodes with its
 * annotations and cordons, and a termination handler's taints. Without `--apply` nothing changes,
 * and with it only what was announced.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { chart, helm, oldest } from "../support/helm.ts";
import { runLastcall } from "../support/lastcall-process.ts";
import { mustRun } from "./must-run.ts";

const manifests = join(import.meta.dirname, "../data/estafette/manifests.yaml");
const annotation = "estafette.io/gke-preemptible-killer-state";
const namespace = "gke-vm-killer";
const deployment = "gke-preemptible-killer-estafette-gke-preemptible-killer";
const image = "estafette/estafette-gke-preemptible-killer:1.3.1";

let plane: ControlPlane;
let folder: string;
/** When the nodes were created, which is when their lifetimes start. */
let bornMs: number;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-migrate-"));
  plane = await startControlPlane({ withKwok: false, withScheduler: false });
  await mustRun(plane, ["apply", "-f", manifests]);
  bornMs = Date.now();
  for (const { name, ...marks } of nodes()) await makeNode(name, marks);
});

afterAll(async () => {
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Marks {
  readonly state?: string;
  readonly cordoned?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly { key: string; effect: string }[];
}

function inHours(hours: number): string {
  return new Date(bornMs + hours * 3_600_000).toISOString().replace(/\.\d+Z/, "Z");
}

function nodes(): readonly (Marks & { readonly name: string })[] {
  const preemptible = { "cloud.google.com/gke-preemptible": "true" };
  const handler = "aws-node-termination-handler/spot-itn";
  return [
    { name: "later", labels: preemptible, state: inHours(15) },
    { name: "early", labels: preemptible, state: inHours(2) },
    { name: "too-late", labels: preemptible, state: inHours(30) },
    { name: "unclear", labels: preemptible, state: "soon", cordoned: true },
    { name: "forgotten", labels: preemptible, state: inHours(-3), cordoned: true },
    { name: "a-persons", labels: preemptible, cordoned: true },
    { name: "tainted", taints: [{ key: handler, effect: "NoSchedule" }], cordoned: true },
    { name: "plain" },
  ];
}

async function makeNode(name: string, { state, cordoned, labels, taints }: Marks): Promise<void> {
  const annotations = state === undefined ? {} : { [annotation]: state };
  await mustRun(plane, ["create", "-f", "-"], {
    ...{ apiVersion: "v1", kind: "Node", metadata: { name, labels, annotations } },
    spec: { providerID: `gce://p/europe-west1-b/${name}`, unschedulable: cordoned, taints },
  });
}

/**
 * Each node's name, cordon, annotation of the killer, and taints other than those of Kubernetes.
 */
async function standing(): Promise<readonly string[]> {
  const { stdout } = await plane.kubectl(["get", "nodes", "-o", "json"]);
  const { items } = JSON.parse(stdout) as {
    items: {
      metadata: { name: string; annotations?: Record<string, string> };
      spec: { unschedulable?: boolean; taints?: { key: string }[] };
    }[];
  };
  return items.map(({ metadata, spec }) => {
    const taints = (spec.taints ?? []).filter(({ key }) => !key.startsWith("node.kubernetes.io/"));
    const state = metadata.annotations?.[annotation] === undefined ? "" : " state";
    const cordon = spec.unschedulable ? " cordoned" : "";
    return `${metadata.name}${cordon}${state}${taints.map(({ key }) => ` ${key}`).join("")}`;
  });
}

function migrate(...args: readonly string[]) {
  const { kubeconfig } = plane;
  return runLastcall(["migrate", ...args, "--kubeconfig", kubeconfig], { folder });
}

const before = [
  "a-persons cordoned",
  "early state",
  "forgotten cordoned state",
  "later state",
  "plain",
  "tainted cordoned aws-node-termination-handler/spot-itn",
  "too-late state",
  "unclear cordoned state",
];

describe("migrate estafette, from the running killer,", () => {
  test("prints a policy and writes values that the API server and the chart accept", async () => {
    await mustRun(plane, ["apply", "-f", join(chart, "crds")]);
    await mustRun(plane, ["wait", "--for=condition=Established", "crd", "--all"]);
    const out = join(folder, "values.yaml");
    const { stdout, code } = await migrate("estafette", "--values-out", out);
    expect(code).toBe(0);
    const [policy, ...others] = parseAllDocuments(stdout).map((one) => one.toJS());
    expect(others).toEqual([]);
    expect(policy.spec).toMatchObject({
      lifetime: { min: "12h", max: "24h" },
      windows: [{ type: "Deny", timeZone: "UTC", start: "00:00", end: "00:01" }],
      drain: { timeout: "300s" },
    });
    await mustRun(plane, ["create", "--dry-run=server", "-f", "-"], policy);
    const values = parse(readFileSync(out, "utf8"));
    expect(values).toMatchObject({
      serviceAccount: { name: "gke-preemptible-killer" },
      secret: {
        workloadIdentityServiceAccount: "preemptible-killer@my-project-1.iam.gserviceaccount.com",
      },
      nodeSelector: { "iam.gke.io/gke-metadata-server-enabled": "true" },
      policies: [{ name: "gke-preemptible", spec: policy.spec }],
    });
    const args = ["template", "lastcall", chart, "--kube-version", oldest, "--values", out];
    const rendered = helm(args, { home: folder });
    expect(rendered).toMatchObject({ stderr: "", code: 0 });
  });

  test("reports what it would do, and changes nothing", async () => {
    const { stderr } = await migrate("estafette");
    for (const said of [
      /the variable INTERVAL has no equivalent/,
      /later would leave at .*, as the killer planned/,
      /early gets a new instant from the plan: .* is before it is 12 hours old/,
      /too-late gets a new instant from the plan: .* is past its deadline/,
      /unclear gets a new instant from the plan: its annotation .* is not an instant|unclear gets .*"soon"/,
      /unclear stays cordoned/,
      /would remove the cordon, the annotation \S+ from forgotten/,
    ]) {
      expect(stderr).toMatch(said);
    }
    expect(stderr).not.toMatch(/a-persons|tainted|plain/);
    expect(await standing()).toEqual(before);
    const { stdout } = await plane.kubectl(["get", "dpol,dep", "-o", "name"]);
    expect(stdout).toBe("");
  });

  test("rejects invalid hours, with nothing on stdout", async () => {
    await mustRun(plane, [
      ...["set", "env", "-n", namespace, `deployment/${deployment}`],
      "BLACKLIST_HOURS=noon",
    ]);
    const { stdout, stderr, code } = await migrate("estafette", "--apply");
    expect({ stdout, code }).toEqual({ stdout: "", code: 2 });
    expect(stderr).toContain('the variable BLACKLIST_HOURS: found "noon"');
    expect(await standing()).toEqual(before);
    await mustRun(plane, [
      ...["set", "env", "-n", namespace, `deployment/${deployment}`],
      "BLACKLIST_HOURS=00:00-00:01",
    ]);
  });

  test("takes over while the killer runs, and keeps its annotations", async () => {
    const pod = {
      ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "killer", namespace } },
      spec: {
        ...{ nodeName: "plain", serviceAccountName: "gke-preemptible-killer" },
        containers: [{ name: "killer", image }],
      },
    };
    await mustRun(plane, ["create", "-f", "-"], pod);
    const { stderr, code } = await migrate("estafette", "--apply");
    expect(code).toBe(0);
    expect(stderr).toContain("estafette is still running");
    const { stdout } = await plane.kubectl(["get", "dep", "-o", "json"]);
    const [departure, ...others] = JSON.parse(stdout).items;
    expect(others).toEqual([]);
    expect(departure.spec).toMatchObject({
      ...{ node: { name: "later" }, cause: "Manual", policy: "gke-preemptible" },
      departAt: expect.stringContaining(inHours(15).slice(0, 19)),
    });
    expect(departure.spec).not.toHaveProperty("deadlineAt");
    // Its instant is three hours ago: no drain of the killer takes that long.
    expect(await standing()).toEqual(
      before.map((one) => (one.startsWith("forgotten") ? "forgotten state" : one)),
    );
  });

  test("removes the annotations once the killer is gone, and then has nothing to do", async () => {
    await mustRun(plane, [
      ...["delete", "pod", "-n", namespace, "killer", "--force", "--grace-period=0"],
    ]);
    const first = await migrate("estafette", "--apply");
    expect(first.code).toBe(0);
    const after = before.map((one) =>
      one.startsWith("unclear")
        ? one
        : one.replace(" state", "").replace("forgotten cordoned", "forgotten"),
    );
    expect(await standing()).toEqual(after);
    const second = await migrate("estafette", "--apply");
    expect(second.code).toBe(0);
    expect(second.stderr).not.toMatch(/removed|created/);
    expect(await standing()).toEqual(after);
    const { stdout } = await plane.kubectl(["get", "dep", "-o", "name"]);
    expect(stdout.trim().split("\n")).toHaveLength(1);
  });

  test("does not overwrite a policy that somebody else changed, and says what to do", async () => {
    const timeout = { spec: { drain: { timeout: "10m" } } };
    const policy = ["departurepolicy", "gke-preemptible"];
    await mustRun(plane, ["patch", ...policy, "--type=merge", "-p", JSON.stringify(timeout)]);
    const { stderr, code } = await migrate("estafette", "--apply");
    expect(code).toBe(1);
    expect(stderr).toContain("Cannot apply departurepolicy/gke-preemptible: ");
    expect(stderr).toContain(".spec.drain.timeout");
    expect(stderr).toContain("kubectl apply --server-side --force-conflicts");
    const { stdout } = await plane.kubectl(["get", ...policy, "-o", "json"]);
    expect(JSON.parse(stdout).spec.drain.timeout).toBe("10m");
  });
});

describe("migrate nth", () => {
  test("reports that none runs, and removes its taint and cordon given a values file", async () => {
    const live = await migrate("nth");
    expect(live).toMatchObject({ code: 2, stdout: "" });
    expect(live.stderr).toContain("found none with an image of aws-node-termination-handler");
    const values = join(import.meta.dirname, "../data/nth/values.yaml");
    const { code, stderr } = await migrate("nth", "--values", values, "--apply");
    expect(code).toBe(0);
    expect(stderr).toContain("removed the cordon, the taint aws-node-termination-handler/spot-itn");
    const now = await standing();
    expect(now).toContain("tainted");
    expect(now).toContain("a-persons cordoned");
  });
});
