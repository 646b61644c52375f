/**
 * The chart with the real Helm: it installs what kustomize does, grants exactly what the fallback
 * needs, and rejects invalid values.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildControlPlane } from "../controlplane/build.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { chart, helm, type Manifest, manifestsIn, oldest, renderer } from "../support/helm.ts";
import { runKubectl } from "../support/kubectl.ts";

const deploy = join(import.meta.dirname, "../../deploy");
const agentUser = "system:serviceaccount:lastcall:lastcall-agent";
/** Values of the chart, and the folders that kustomize installs for the same, besides `base`. */
const variants: readonly (readonly [string, readonly string[]])[] = [
  ["agent.options.fallback=None", ["agent"]],
  ["agent.options.fallback=Cordon", ["agent-fallback/cordon"]],
  ["agent.options.fallback=Drain", ["agent-fallback/drain"]],
  ["controller.restartOwner=true", ["agent", "restart-owner"]],
  ["networkPolicy.enabled=true", ["agent", "network-policy"]],
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
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: unknown }[];
  readonly image: string;
  readonly imagePullPolicy?: string;
}

/**
 * An object in a comparable form: without the labels of a release, with sorted variables, and with
 * the option `fallback`, whether flag or variable, as a variable.
 */
function meaningOf(manifest: unknown): unknown {
  const copy = JSON.parse(JSON.stringify(manifest), (key, value) => {
    if (key === "containers") return (value as Container[]).map(containerOf);
    if (key === "app.kubernetes.io/instance") return undefined;
    return value;
  });
  delete copy.metadata.labels;
  return copy;
}

function containerOf({ imagePullPolicy, args = [], env = [], ...rest }: Container) {
  const flag = args.find((arg) => arg.startsWith("--fallback="));
  const variables = [
    ...env,
    ...(flag === undefined ? [] : [{ name: "LASTCALL_FALLBACK", value: flag.split("=")[1] }]),
  ];
  return {
    ...rest,
    args: args.filter((arg) => arg !== flag),
    env: variables
      .filter(({ name, value }) => name !== "LASTCALL_FALLBACK" || value !== "None")
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

describe("the chart", () => {
  test("passes helm lint", () => {
    const { stdout, stderr, code } = helm(["lint", "--strict", chart], { home });
    expect(`${stdout}${stderr}`).toContain("0 chart(s) failed");
    expect(code).toBe(0);
  });

  test.each(variants)("installs with %s the same as kustomize", async (value, folders) => {
    const made = render("--set", value);
    const wanted = new Map(await kustomized("base"));
    for (const folder of folders) {
      for (const [key, one] of await kustomized(folder)) wanted.set(key, one);
    }
    // Helm creates the namespace itself.
    wanted.delete("Namespace /lastcall");
    expect([...made.keys()].toSorted()).toEqual([...wanted.keys()].toSorted());
    for (const [key, one] of wanted) expect(meaningOf(made.get(key)), key).toEqual(meaningOf(one));
  });

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
    ["policies[0].name=spot,policies[0].spec.lifetime.max=soon", "policies.0.spec.lifetime.max"],
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
