/**
 * Unchanged values of estafette-gke-preemptible-killer's chart with the real Helm: its names, its
 * Google identity and its behavior are kept; an unsupported value is rejected by its name.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Deployment } from "kubernetes-types/apps/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { permissionsFor } from "../../src/cloud/gcp/permissions.ts";
import { translateKiller } from "../../src/migrate/killer.ts";
import { killerValuesSetup } from "../../src/migrate/killer-setup.ts";
import { root } from "../../tools/source-tree.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { chart, helm, type Manifest, manifestsIn, oldest } from "../support/helm.ts";

const data = join(import.meta.dirname, "../data/estafette");
const article = join(data, "article-values.yaml");
const release = ["gke-preemptible-killer", chart, "--namespace", "gke-vm-killer"] as const;

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-killer-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

type Values = Readonly<Record<string, unknown>>;

function fileOf(values: Values): string {
  const file = join(home, "values.yaml");
  writeFileSync(file, stringify(values));
  return file;
}

function template(file: string) {
  const args = ["template", ...release, "--kube-version", oldest, "--values", file];
  return helm(args, { home });
}

function rendered(file: string): ReadonlyMap<string, Manifest> {
  const { stdout, stderr, code } = template(file);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return manifestsIn(stdout);
}

function deploymentIn(made: ReadonlyMap<string, Manifest>): NonNullable<Deployment["spec"]> {
  return (made.get("Deployment gke-vm-killer/lastcall") as unknown as Deployment).spec as never;
}

function policyIn(made: ReadonlyMap<string, Manifest>) {
  return made.get("DeparturePolicy /gke-preemptible") as unknown as { spec: Values } | undefined;
}

const key = JSON.stringify({
  type: "service_account",
  private_key: "-----BEGIN…",
  project_id: "p",
});
const identity = { workloadIdentityServiceAccount: "killer@my-project-1.iam.gserviceaccount.com" };

describe("the article's values", () => {
  test("keep the account, its namespace and its Google identity", () => {
    const made = rendered(article);
    const account = made.get("ServiceAccount gke-vm-killer/gke-preemptible-killer");
    expect(account?.metadata).toMatchObject({
      annotations: {
        "iam.gke.io/gcp-service-account": "preemptible-killer@my-project-1.iam.gserviceaccount.com",
      },
    });
    const { template: pod } = deploymentIn(made);
    expect(pod.spec?.serviceAccountName).toBe("gke-preemptible-killer");
    expect(pod.spec?.nodeSelector).toEqual({
      "kubernetes.io/os": "linux",
      "iam.gke.io/gke-metadata-server-enabled": "true",
    });
    expect(pod.metadata?.annotations).toMatchObject({ "prometheus.io/port": "9101" });
    expect(JSON.stringify(pod)).not.toContain("GOOGLE_APPLICATION_CREDENTIALS");
    expect([...made.keys()].filter((name) => name.startsWith("Secret"))).toEqual([]);
  });

  test("are rejected if a variable of the killer is a reference instead of a value", () => {
    const valueFrom = { configMapKeyRef: { name: "c", key: "k" } };
    const extraEnv = [{ name: "WHITELIST_HOURS", valueFrom }];
    const { stderr, code } = template(fileOf({ secret: identity, extraEnv }));
    expect(code).toBe(1);
    expect(stderr).toContain("extraEnv.WHITELIST_HOURS: found a reference, expected its value");
  });

  test("keep the requests, but not a limit that is too low for the controller", () => {
    const resources = deploymentIn(rendered(article)).template.spec?.containers[0]?.resources;
    expect(resources).toEqual({
      requests: { cpu: "10m", memory: "15Mi" },
      limits: { memory: "256Mi" },
    });
  });

  test("create the policy that does what the killer did", () => {
    expect(policyIn(rendered(article))?.spec).toEqual({
      nodeSelector: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: "cloud.google.com/gke-preemptible", operator: "In", values: ["true"] },
            ],
          },
        ],
      },
      lifetime: { min: "12h", max: "24h", reserve: "1800s" },
      spacing: { mode: "Even" },
      drain: { timeout: "300s", onTimeout: "Proceed" },
    });
  });

  test("are those of docs/migrate.md, which adds the images, and render both", () => {
    const page = readFileSync(join(root, "docs/migrate.md"), "utf8");
    const shown = parse(/```yaml\n(# values\.yaml\n[\s\S]*?)```/.exec(page)?.[1] ?? "");
    const { image, agent, ...others } = shown;
    const { resources: _resources, ...own } = parse(readFileSync(article, "utf8"));
    expect(others).toEqual(own);
    const made = rendered(fileOf(shown));
    const [controller] = deploymentIn(made).template.spec?.containers ?? [];
    expect(controller?.image).toMatch(new RegExp(`^${image.repository}:`));
    expect(JSON.stringify([...made])).toContain(`"image":"${agent.image.repository}:`);
  });

  test("create no policy if the values name one", () => {
    const values = {
      ...parse(readFileSync(article, "utf8")),
      policies: [{ name: "own", spec: {} }],
    };
    const made = rendered(fileOf(values));
    expect(policyIn(made)).toBeUndefined();
    expect(made.has("DeparturePolicy /own")).toBe(true);
  });
});

describe("the values of the killer's chart", () => {
  test("are accepted with all defaults", () => {
    const made = rendered(join(data, "default-values.yaml"));
    // Without a name in the values, the name that the killer's chart would have used.
    const account = "gke-preemptible-killer-estafette-gke-preemptible-killer";
    expect(made.has(`ServiceAccount gke-vm-killer/${account}`)).toBe(true);
    const { replicas, template: pod } = deploymentIn(made);
    expect(replicas).toBe(1);
    expect(pod.spec?.containers[0]?.args).toEqual(["run", "--log-format=text"]);
    // The killer's chart prefers preemptible nodes, by a weight of 10; Lastcall's outweighs it.
    const { nodeAffinity } = pod.spec?.affinity ?? {};
    expect(nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution).toBeUndefined();
    const preferences = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution;
    expect(preferences?.map(({ weight }) => weight)).toEqual([100, 10]);
  });

  test("with a key file mount it as the credentials", () => {
    for (const secret of [
      { googleServiceAccountKeyfileJson: key },
      {
        googleServiceAccountKeyfileJson: Buffer.from(key).toString("base64"),
        valuesAreBase64Encoded: true,
      },
    ]) {
      const made = rendered(fileOf({ secret }));
      const kept = made.get("Secret gke-vm-killer/lastcall-credentials") as unknown as {
        data: Record<string, string>;
      };
      expect(Buffer.from(kept.data["service-account-key.json"] ?? "", "base64").toString()).toBe(
        key,
      );
      const pod = deploymentIn(made).template.spec;
      expect(pod?.volumes).toEqual([
        {
          name: "gcp-service-account-secret",
          secret: { secretName: "lastcall-credentials" },
        },
      ]);
      const container = pod?.containers[0];
      expect(container?.env).toContainEqual({
        name: "GOOGLE_APPLICATION_CREDENTIALS",
        value: "/gcp-service-account/service-account-key.json",
      });
      expect(container?.volumeMounts).toEqual([
        { name: "gcp-service-account-secret", mountPath: "/gcp-service-account", readOnly: true },
      ]);
      expect(policyIn(made)).toBeDefined();
    }
  });

  test("with an existing Secret mount that one", () => {
    const made = rendered(
      fileOf({ secret: { googleServiceAccountSecret: { name: "mine", key: "key.json" } } }),
    );
    const pod = deploymentIn(made).template.spec;
    expect(pod?.volumes?.[0]?.secret?.secretName).toBe("mine");
    expect(pod?.containers[0]?.env).toContainEqual({
      name: "GOOGLE_APPLICATION_CREDENTIALS",
      value: "/gcp-service-account/key.json",
    });
    expect([...made.keys()].filter((name) => name.startsWith("Secret"))).toEqual([]);
  });

  test("turn hours, filters and the timeout from the environment into the policy", () => {
    const extraEnv = {
      WHITELIST_HOURS: "9:00 - 12:00, 22:00 - 06:00",
      BLACKLIST_HOURS: "23:30-00:00",
      FILTERS: "cloud.google.com/gke-nodepool: web, batch; team: infra",
      DRAIN_TIMEOUT: 1200,
      OTHER: "kept",
    };
    const made = rendered(fileOf({ secret: identity, drainTimeout: 300, extraEnv }));
    expect(policyIn(made)?.spec).toMatchObject({
      nodeSelector: {
        nodeSelectorTerms: [
          {
            matchExpressions: [
              { key: "cloud.google.com/gke-preemptible", operator: "In", values: ["true"] },
              { key: "cloud.google.com/gke-nodepool", operator: "In", values: ["web", "batch"] },
              { key: "team", operator: "In", values: ["infra"] },
            ],
          },
        ],
      },
      lifetime: { min: "12h", max: "24h", reserve: "2100s" },
      windows: [
        { name: "whitelist-1", type: "Allow", timeZone: "UTC", start: "09:00", end: "12:00" },
        { name: "whitelist-2", type: "Allow", timeZone: "UTC", start: "22:00", end: "06:00" },
        { name: "blacklist-1", type: "Deny", timeZone: "UTC", start: "23:30", end: "00:00" },
      ],
      drain: { timeout: "1200s", onTimeout: "Proceed" },
    });
    // `lastcall migrate` translates the same values to the same policy.
    const translated = translateKiller(killerValuesSetup({ drainTimeout: 300, extraEnv }, "v"));
    expect(policyIn(made)?.spec).toEqual(translated.policies[0]?.spec);
    const variables = deploymentIn(made).template.spec?.containers[0]?.env ?? [];
    expect(variables).toContainEqual({ name: "OTHER", value: "kept" });
    expect(variables.map(({ name }) => name)).not.toContain("FILTERS");
  });

  const withIdentity = { secret: identity };
  test.each<[string, Values, string]>([
    [
      "an hour",
      { ...withIdentity, extraEnv: { WHITELIST_HOURS: "9 to 5" } },
      "extraEnv.WHITELIST_HOURS",
    ],
    [
      "an hour after 24:00",
      { ...withIdentity, extraEnv: { BLACKLIST_HOURS: "22:00-25:00" } },
      "extraEnv.BLACKLIST_HOURS",
    ],
    [
      "hours that start and end at the same time",
      { ...withIdentity, extraEnv: { WHITELIST_HOURS: "09:00-09:00" } },
      "extraEnv.WHITELIST_HOURS",
    ],
    ["a filter", { ...withIdentity, extraEnv: { FILTERS: "pool=web" } }, "extraEnv.FILTERS"],
    ["a timeout", { ...withIdentity, extraEnv: { DRAIN_TIMEOUT: "5m" } }, "drainTimeout"],
    ["a timeout of zero", { ...withIdentity, drainTimeout: 0 }, "drainTimeout"],
    ["a timeout longer than a lifetime", { ...withIdentity, drainTimeout: 86400 }, "drainTimeout"],
    ["its arguments", { ...withIdentity, extraArgs: ["--interval=10"] }, "extraArgs"],
    [
      "its image",
      { ...withIdentity, image: { repository: "estafette/estafette-gke-preemptible-killer" } },
      "image",
    ],
    [
      "its monitor",
      { ...withIdentity, prometheus: { enabled: true, servicemonitor: { enabled: true } } },
      "metrics.serviceMonitor.enabled",
    ],
    ["a drain timeout without a policy", { drainTimeout: 300 }, "policies[].spec.drain.timeout"],
    [
      "hours without a policy",
      { extraEnv: { WHITELIST_HOURS: "09:00-12:00" } },
      "extraEnv.WHITELIST_HOURS",
    ],
    [
      "the example key file",
      { secret: { googleServiceAccountKeyfileJson: '{"type": "service_account"}' } },
      "private_key",
    ],
    [
      "an invalid key file",
      { secret: { googleServiceAccountKeyfileJson: "secret-1234" } },
      "googleServiceAccountKeyfileJson",
    ],
    ["an unknown log format", { logFormat: "xml" }, "logFormat"],
    [
      "an unknown field of secret",
      { secret: { workloadIdentityAccount: "a" } },
      "workloadIdentityAccount",
    ],
  ])("are rejected by name: %s", (_, values, named) => {
    const { stderr, code } = template(fileOf(values));
    expect(code).not.toBe(0);
    expect(stderr).toContain(named);
    expect(stderr).not.toContain("secret-1234");
  });
});

/** The releases that the command of the notes selects from this list of Helm. */
function killersIn(list: string): readonly (string | undefined)[] {
  const lines = list.split("\n");
  const selected = lines.filter((line) => line.includes("estafette-gke-preemptible-killer-"));
  return selected.map((line) => line.split("\t")[0]?.trim());
}

describe("on a real API server", () => {
  let plane: ControlPlane;

  beforeAll(async () => {
    plane = await startControlPlane({ withKwok: false, withScheduler: false });
  });
  afterAll(() => plane?.stop());

  test("the article's values install, and the notes list the missing permissions", async () => {
    const { kubeconfig } = plane;
    const flags = ["--create-namespace", "--values", article];
    const { stdout, stderr, code } = helm(["upgrade", "--install", ...release, ...flags], {
      home,
      kubeconfig,
    });
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toContain("This release, gke-preemptible-killer, is Lastcall.");
    expect(stdout).toContain("The controller prefers nodes that are not Spot.");
    expect(stdout).toContain("An image is named without a registry.");
    const use = { mode: "Recreate", preemptionPoll: false } as const;
    const wanted = permissionsFor(use).map(({ permission }) => permission);
    const line = stdout.split("\n").find((one) => one.includes("gcloud iam roles update"));
    expect(line).toContain("--project my-project-1 ");
    expect(line?.split("--add-permissions ")[1]?.split(",").toSorted()).toEqual(wanted.toSorted());
    const { stdout: policies } = await plane.kubectl(["get", "dpol", "-o", "name"]);
    expect(policies.trim()).toBe("departurepolicy.lastcall.dev/gke-preemptible");
  });

  function notesWith(values: Values): string {
    const flags = ["--dry-run=server", "--values", fileOf(values)];
    const { kubeconfig } = plane;
    const { stdout, stderr } = helm(["upgrade", ...release, ...flags], { home, kubeconfig });
    expect(stderr).toBe("");
    return stdout.slice(stdout.indexOf("NOTES:"));
  }

  const preferred = "preferredDuringSchedulingIgnoredDuringExecution";
  test.each<[Values, boolean]>([
    [{}, true],
    [{ affinity: { nodeAffinity: { [preferred]: [] } } }, false],
    [{ nodeSelector: { "cloud.google.com/gke-preemptible": "true" } }, false],
    [{ nodeSelector: { "iam.gke.io/gke-metadata-server-enabled": "true" } }, true],
  ])("the notes say with %j whether the controller prefers stable nodes: %s", (values, prefers) => {
    const notes = notesWith(values);
    expect(notes.includes("The controller prefers nodes that are not Spot.")).toBe(prefers);
    expect(notes.includes("The controller runs on any node")).toBe(!prefers);
  });

  test("the notes tell how to clean up, without migrate if the values have policies", () => {
    const apply = "migrate estafette --values values.yaml --apply";
    const clear = "kubectl annotate nodes --all estafette.io/gke-preemptible-killer-state-";
    const alone = notesWith({ secret: identity });
    const list = "  helm list --all-namespaces | grep estafette-gke-preemptible-killer-";
    expect(alone.split("\n")).toEqual(expect.arrayContaining([list, `  lastcall ${apply}`]));
    expect([alone.includes(apply), alone.includes(clear)]).toEqual([true, false]);
    const own = notesWith({ secret: identity, policies: [{ name: "spot", spec: {} }] });
    expect(own.split("\n")).toEqual(expect.arrayContaining([list, `  ${clear}`]));
    expect(own).not.toContain("There are no agents");
    const strict = { requireStableNodes: true };
    const bare = notesWith({ secret: identity, agent: { enabled: false }, controller: strict });
    expect(bare).toContain("There are no agents");
    expect(bare).toContain("The controller runs only on nodes that are not Spot");
    expect([own.includes(apply), own.includes(clear)]).toEqual([false, true]);
  });

  test("the killer's release is upgraded in place to Lastcall's if the CRDs exist", async () => {
    const { kubeconfig } = plane;
    const killer = join(home, "killer");
    mkdirSync(join(killer, "templates"), { recursive: true });
    const about = { apiVersion: "v2", name: "estafette-gke-preemptible-killer", version: "1.3.1" };
    writeFileSync(join(killer, "Chart.yaml"), stringify(about));
    const objects = readFileSync(join(data, "manifests.yaml"), "utf8").split("---\n").slice(1);
    writeFileSync(join(killer, "templates/all.yaml"), objects.join("---\n"));
    const at = ["--namespace", "gke-vm-killer"];
    const run = (...args: readonly string[]) => helm([...args, ...at], { home, kubeconfig });
    expect(run("uninstall", release[0]).code).toBe(0);
    expect(run("install", release[0], killer).stderr).toBe("");
    expect(killersIn(run("list", "--all-namespaces").stdout)).toEqual(["gke-preemptible-killer"]);
    const { stdout: notes, stderr, code } = run("upgrade", release[0], chart, "--values", article);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    const { stdout } = await plane.kubectl(["get", "deploy", "-n", at[1] as string, "-o", "name"]);
    expect(stdout.trim()).toBe("deployment.apps/lastcall");
    // What the notes tell to uninstall is no longer this release, which is Lastcall now.
    expect(notes).toContain("This release, gke-preemptible-killer, is Lastcall;");
    expect(notes).toContain("helm list --all-namespaces | grep estafette-gke-preemptible-killer-");
    expect(killersIn(run("list", "--all-namespaces").stdout)).toEqual([]);
  });
});
