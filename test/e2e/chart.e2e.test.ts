/**
 * The chart with the real Helm: it installs what kustomize does, grants exactly what the fallback
 * needs, and rejects invalid values.
 */
import { globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildControlPlane } from "../controlplane/build.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { chart, helm, type Manifest, manifestsIn, oldest, renderer } from "../support/helm.ts";
import { runKubectl } from "../support/kubectl.ts";

const deploy = join(import.meta.dirname, "../../deploy");
const agentUser = "system:serviceaccount:lastcall:lastcall-agent";
/** Flags of Helm, and the folders that kustomize installs for the same. */
const variants: readonly (readonly [flags: readonly string[], folders: readonly string[]])[] = [
  [[], ["base", "agent"]],
  [["--set=agent.enabled=false"], ["base"]],
  [["--set=controller.enabled=false"], ["crds", "agent"]],
  [["--set=agent.options.fallback=Cordon"], ["base", "agent-fallback/cordon"]],
  [["--set=agent.options.fallback=Drain"], ["base", "agent-fallback/drain"]],
  [["--set=controller.restartOwner=true"], ["base", "agent", "restart-owner"]],
  [["--set=networkPolicy.enabled=true"], ["base", "agent", "network-policy"]],
  [
    [
      ...["--set=agent.options.fallback=Drain", "--set=controller.restartOwner=true"],
      "--set=networkPolicy.enabled=true",
    ],
    ["base", "agent-fallback/drain", "restart-owner", "network-policy"],
  ],
];

let home: string;
let render: ReturnType<typeof renderer>;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-chart-"));
  render = renderer(home);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

async function kustomized(folder: string): Promise<ReadonlyMap<string, Manifest>> {
  const { stdout, stderr, code } = await runKubectl({
    command: buildControlPlane().controlplane,
    args: ["kustomize", join(deploy, folder)],
    ...{ kubeconfig: "/dev/null", home, signal: new AbortController().signal },
  });
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return manifestsIn(stdout);
}

interface Container {
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string }[];
}

interface Workload extends Manifest {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: { readonly containers: readonly Container[] };
    };
  };
}

/** What the chart makes of an object that kustomize installs: it differs in nothing else. */
function ofRelease(one: Manifest): Manifest {
  // Helm installs definitions as they are.
  if (one.kind === "CustomResourceDefinition") return one;
  const { labels } = one.metadata as { readonly labels?: object };
  const release = {
    "app.kubernetes.io/component": one.metadata.name.includes("agent") ? "agent" : "controller",
    "app.kubernetes.io/instance": "lastcall",
    "app.kubernetes.io/managed-by": "Helm",
    "app.kubernetes.io/name": "lastcall",
    "app.kubernetes.io/version": "0.1.0",
    "helm.sh/chart": "lastcall-0.1.0",
  };
  const labelled = { ...one, metadata: { ...one.metadata, labels: { ...labels, ...release } } };
  const isWorkload = one.kind === "Deployment" || one.kind === "DaemonSet";
  return isWorkload ? workloadOfRelease(labelled as unknown as Workload) : labelled;
}

function workloadOfRelease(one: Workload): Workload {
  const { metadata, spec } = one.spec.template;
  const labels = { ...metadata.labels, "app.kubernetes.io/instance": "lastcall" };
  const containers = spec.containers.map(containerOfRelease);
  const template = { metadata: { ...metadata, labels }, spec: { ...spec, containers } };
  return { ...one, spec: { ...one.spec, template } };
}

/** Options are flags, sorted, where a patch of kustomize adds a variable. */
function containerOfRelease({ args: [command = "", ...flags], env, ...rest }: Container) {
  const added = env.find(({ name }) => name === "LASTCALL_FALLBACK");
  const all = added === undefined ? flags : [...flags, `--fallback=${added.value}`];
  return {
    // The API server's default for a tag.
    ...{ imagePullPolicy: "IfNotPresent", ...rest },
    ...{ args: [command, ...all.toSorted()], env: env.filter((one) => one !== added) },
  };
}

describe("the chart", () => {
  test("passes helm lint", () => {
    const { stdout, stderr, code } = helm(["lint", "--strict", chart], { home });
    expect(`${stdout}${stderr}`).toContain("0 chart(s) failed");
    expect(code).toBe(0);
  });

  test("is compared with every folder that kustomize installs", () => {
    const found = globSync("**/kustomization.yaml", { cwd: deploy }).map((file) => dirname(file));
    const compared = variants.flatMap(([, folders]) => folders);
    // It has no objects.
    expect(found.toSorted()).toEqual([...new Set([...compared, "references"])].toSorted());
  });

  test.each(variants)(
    "installs with %j every object of %j, the same in every field",
    async (...one) => {
      const [flags, folders] = one;
      const made = render(...flags);
      const wanted = new Map<string, Manifest>();
      for (const folder of folders) {
        for (const [key, object] of await kustomized(folder)) wanted.set(key, ofRelease(object));
      }
      // Helm creates the namespace itself.
      wanted.delete("Namespace /lastcall");
      expect([...made.keys()].toSorted()).toEqual([...wanted.keys()].toSorted());
      for (const [key, object] of wanted) expect(made.get(key), key).toEqual(object);
    },
  );

  test("works in any namespace, and names no other", () => {
    const made = render("--namespace", "spot-tools", "--set", "agent.options.fallback=Drain");
    const namespaces = new Set(
      [...made.values()].flatMap(({ metadata }) => metadata.namespace ?? []),
    );
    expect([...namespaces]).toEqual(["spot-tools"]);
    const text = JSON.stringify([...made.values()]);
    expect(text).not.toContain("system:serviceaccount:lastcall:");
    expect(text).not.toMatch(/"namespace":"lastcall"/);
  });

  test.each([
    ["controller", "agent", "DaemonSet"],
    ["agent", "controller", "Deployment"],
  ])("leaves out the %s if it is disabled", (part, _, left) => {
    const made = render("--set", `${part}.enabled=false`);
    const kinds = [...made.values()].map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "Deployment" || kind === "DaemonSet")).toEqual([left]);
  });

  test("puts metricsFrom and egress of the values into the network policies", () => {
    const from = [{ podSelector: { matchLabels: { app: "prometheus" } } }];
    const rule = { to: [{ podSelector: {} }], ports: [{ port: 9093 }] };
    const made = render(
      ...["--set", "networkPolicy.enabled=true"],
      ...["--set-json", `networkPolicy.metricsFrom=${JSON.stringify(from)}`],
      ...["--set-json", `networkPolicy.egress=${JSON.stringify([rule])}`],
    );
    const specOf = (name: string) =>
      (
        made.get(`NetworkPolicy lastcall/${name}`) as unknown as {
          spec: { ingress: { from: unknown }[]; egress: unknown[] };
        }
      ).spec;
    expect(specOf("lastcall").ingress[0]?.from).toEqual(from);
    expect(specOf("lastcall-agent").ingress[0]?.from).toEqual(from);
    expect(specOf("lastcall").egress).toContainEqual(rule);
    expect(specOf("lastcall-agent").egress).not.toContainEqual(rule);
  });

  test("sets the given priority class in both pods and their quotas", () => {
    const made = JSON.stringify([...render("--set", "priorityClassName=mine").values()]);
    expect(made).not.toMatch(/system-(node|cluster)-critical/);
    expect(made.match(/"priorityClassName":"mine"/g)).toHaveLength(2);
    expect(
      made.match(/"scopeName":"PriorityClass","operator":"In","values":\["mine"\]/g),
    ).toHaveLength(2);
  });

  test.each([
    ["agent.options.fallback=drain", "agent.options.fallback"],
    ["agent.options.fallbak=Drain", "fallbak"],
    ["agent.fallback=Drain", "fallback"],
    ["controller.options.log-level=loud", "controller.options.log-level"],
    ["controller.options.sqs-receivers=0", "controller.options.sqs-receivers"],
    ["controller.options.dry-run=perhaps", "controller.options.dry-run"],
    ["agent.options.node-name=n1", "node-name"],
    ["controller.replicas=many", "controller.replicas"],
    ["image.digest=1234", "image.digest"],
    ["policies[0].name=spot,policies[0].spec.lifetime.max=soon", "policies[0].spec.lifetime.max"],
    ["policies[0].name=spot,policies[0].spec.lifetim.max=24h", "lifetim"],
    ["priorityClassName=Not A Class", "priorityClassName"],
    ["networkPolicy.enabled=yes", "networkPolicy.enabled"],
    ["controller.options.metrics-address=:65536", "controller.options.metrics-address"],
    ["image.tag=a b", "image.tag"],
    ["resources.limit.memory=1Gi", "resources"],
    ["agent.resources.limits.memory=lots", "agent.resources.limits.memory"],
    ["affinity.nodeAfinity.x=y", "affinity"],
    ["tolerations[0].effect=NoSchedul", "tolerations.0.effect"],
    ["agent.tolerations[0].opertor=Exists", "agent.tolerations.0"],
    ["agent.updateStrategy.type=Rolling", "agent.updateStrategy.type"],
    ["podLabels.a\\,b=c", "podLabels"],
    ["nodeSelector.pool=a b", "nodeSelector.pool"],
    ["metrics.podMonitor.labels.team=a/b", "metrics.podMonitor.labels.team"],
  ])("rejects %s by its name", (value, named) => {
    const flags = ["--kube-version", oldest, "--set", value];
    const { stderr, code } = helm(["template", "lastcall", chart, ...flags], { home });
    expect(code).not.toBe(0);
    expect(stderr.replaceAll("/", ".")).toContain(named);
  });
});

describe("on a real API server", () => {
  let plane: ControlPlane;

  beforeAll(async () => {
    plane = await startControlPlane();
  });
  afterAll(() => plane?.stop());

  async function mayAgent(...what: readonly string[]): Promise<boolean> {
    const { stdout } = await plane.kubectl(["auth", "can-i", ...what, "--as", agentUser]);
    return stdout.trim() === "yes";
  }

  /** What the agent's account may do, according to the cluster's RBAC. */
  async function rights(): Promise<Readonly<Record<string, boolean>>> {
    return {
      departures: await mayAgent("create", "departures.lastcall.dev"),
      marks: await mayAgent("patch", "nodes"),
      lease: await mayAgent("get", "leases.coordination.k8s.io/lastcall", "-n", "lastcall"),
      evictions: await mayAgent("create", "pods", "--subresource=eviction", "-A"),
      deletes: await mayAgent("delete", "pods", "-A"),
      secrets: await mayAgent("get", "secrets", "-A"),
      uncordonsAll: await mayAgent("delete", "nodes"),
    };
  }

  const none = { departures: true, marks: false, lease: false, evictions: false, deletes: false };
  const never = { secrets: false, uncordonsAll: false };

  // Each is applied on top of the previous one: permissions no longer needed are revoked.
  test.each([
    ["None", none],
    ["Drain", { departures: true, marks: true, lease: true, evictions: true, deletes: true }],
    ["Cordon", { departures: true, marks: true, lease: true, evictions: false, deletes: false }],
    ["None", none],
  ] as const)("the fallback %s grants exactly its permissions", async (fallback, granted) => {
    const kubeconfig = plane.kubeconfig;
    const flags = ["--namespace", "lastcall", "--create-namespace"];
    const { stderr, code } = helm(
      [
        "upgrade",
        "--install",
        "lastcall",
        chart,
        ...flags,
        "--set",
        `agent.options.fallback=${fallback}`,
      ],
      { home, kubeconfig },
    );
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(await rights()).toEqual({ ...granted, ...never });
  });

  test("helm uninstall removes everything except the CRDs", async () => {
    const { kubeconfig } = plane;
    const { code } = helm(["uninstall", "lastcall", "--namespace", "lastcall"], {
      home,
      kubeconfig,
    });
    expect(code).toBe(0);
    const { stdout } = await plane.kubectl([
      ...["get", "validatingadmissionpolicies,clusterroles,crds", "-o", "name"],
    ]);
    const ours = stdout.split("\n").filter((line) => line.includes("lastcall"));
    expect(ours.map((line) => line.split("/").at(-1))).toEqual([
      "departurepolicies.lastcall.dev",
      "departures.lastcall.dev",
    ]);
  });
});
