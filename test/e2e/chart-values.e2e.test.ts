/**
 * The chart's values with the real Helm: each option reaches its component as a flag that the
 * command line accepts, and names, accounts, pods, monitoring and policies follow the values.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DaemonSet, Deployment } from "kubernetes-types/apps/v1.js";
import type { PodSpec } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { type Command, fieldNameOf, type Option } from "../../src/config/options/option.ts";
import { optionsFor } from "../../src/config/options/options.ts";
import {
  type FlagValue,
  readOptionValue,
  resolveOptions,
} from "../../src/config/options/resolve-options.ts";
import { panels } from "../../tools/dashboard.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { chart, helm, type Manifest, oldest, renderer } from "../support/helm.ts";
import { mustRun } from "./must-run.ts";

let home: string;
let render: ReturnType<typeof renderer>;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-values-"));
  render = renderer(home);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Renders the chart with these values in a file. */
function withValues(values: object, ...flags: readonly string[]): ReadonlyMap<string, Manifest> {
  const file = join(home, "values.yaml");
  writeFileSync(file, stringify(values));
  return render("--values", file, ...flags);
}

/** The error of Helm for values that it rejects. */
function refusal(values: object): string {
  const file = join(home, "values.yaml");
  writeFileSync(file, stringify(values));
  const flags = ["--kube-version", oldest, "--values", file];
  const { stderr, code } = helm(["template", "lastcall", chart, ...flags], { home });
  expect(code).not.toBe(0);
  return stderr;
}

function podOf(made: ReadonlyMap<string, Manifest>, part: "controller" | "agent"): PodSpec {
  const key =
    part === "agent" ? "DaemonSet lastcall/lastcall-agent" : "Deployment lastcall/lastcall";
  return (made.get(key) as unknown as Deployment | DaemonSet).spec?.template.spec as PodSpec;
}

/** Each is another port, because the chart refuses one port for two of them. */
const addresses: Readonly<Record<string, string>> = {
  "metrics-address": ":9876",
  "health-address": ":9877",
  "notice-address": ":9878",
};

/** Where the chart accepts only what the program does. */
const samples: Readonly<Record<string, string>> = {
  namespace: "lastcall",
  "action-hosts": "hooks.slack.com,*.example.com:443",
  "aks-cluster": "group/cluster",
  "aws-managed-tag": 'team=it\'s a "tag"',
  "gcp-endpoint": "https://example.com:8443/a",
  "azure-endpoint": "https://example.com:8443/b",
};

/** A valid value of the option, as in YAML, that is not the default. */
function sampleOf(option: Option): unknown {
  const sample = samples[option.name];
  if (sample !== undefined) return sample;
  switch (option.type) {
    case "switch":
      return option.default !== "true";
    case "choice":
      return option.choices.find((one) => one !== option.default);
    case "integer":
    case "number":
      return option.maximum;
    case "url":
      return "https://example.com:8443/a?b=c";
    case "address":
      return addresses[option.name];
    case "duration":
      return option.longest ?? "1h30m";
    default:
      // Any of them may be a path.
      return option.list
        ? ["/f/one", "/f/two, three"]
        : "/f/with 'quotes', \"both\" and {{braces}}";
  }
}

/** Contains every file, because the chart refuses the path of one that no volume contains. */
const files = {
  extraVolumes: [{ name: "all", hostPath: { path: "/" } }],
  extraVolumeMounts: [{ name: "all", mountPath: "/f" }],
};

const parts: readonly (readonly [Command, "controller" | "agent"])[] = [
  ["run", "controller"],
  ["agent", "agent"],
];

describe("options", () => {
  test.each(parts)("of %s reach the %s as flags that it accepts", (command, part) => {
    const listed = optionsFor(command).filter(({ name }) => name !== "node-name");
    const options = Object.fromEntries(listed.map((option) => [option.name, sampleOf(option)]));
    const values = part === "agent" ? { agent: { options, ...files } } : { [part]: { options } };
    const made = withValues({ replicaCount: 1, ...files, ...values });
    const [name, ...args] = podOf(made, part).containers[0]?.args ?? [];
    expect(name).toBe(command);
    const flags: Record<string, FlagValue> = { nodeName: "n1" };
    for (const arg of args) {
      const [, flag = "", text = ""] = /^--([a-z0-9-]+)=(.*)$/s.exec(arg) ?? [];
      const option = listed.find((one) => one.name === flag);
      const field = fieldNameOf(flag);
      flags[field] = option?.list ? [...((flags[field] as string[]) ?? []), text] : text;
    }
    const read = resolveOptions(command, { flags, env: {} }) as Readonly<Record<string, unknown>>;
    for (const option of listed) {
      const value = read[fieldNameOf(option.name)];
      const sample = options[option.name];
      const one = (text: unknown) => readOptionValue(option, String(text));
      const wanted = Array.isArray(sample) ? { value: sample } : one(sample);
      expect({ [option.name]: { value } }).toEqual({ [option.name]: wanted });
    }
  });

  test("change the ports and the scheme in containers, annotations and monitors", () => {
    const controller = {
      options: {
        ...{ "metrics-address": ":9200", "health-address": ":8090" },
        ...{ "metrics-cert-file": "/f/c", "metrics-key-file": "/f/k" },
      },
    };
    const agent = { options: { "metrics-address": ":9201", "health-address": "127.0.0.1:8091" } };
    const metrics = { podMonitor: { enabled: true } };
    const made = withValues({ controller, agent, metrics, ...files });
    const ports = podOf(made, "controller").containers[0]?.ports;
    expect(ports?.map(({ name, containerPort }) => [name, containerPort])).toEqual([
      ["metrics", 9200],
      ["health", 8090],
    ]);
    const ofAgent = podOf(made, "agent").containers[0];
    expect(ofAgent?.ports).toEqual([{ name: "metrics", containerPort: 9201, hostPort: 9201 }]);
    expect(ofAgent?.livenessProbe?.httpGet).toMatchObject({ host: "127.0.0.1", port: 8091 });
    const template = (made.get("Deployment lastcall/lastcall") as unknown as Deployment).spec
      ?.template;
    expect(template?.metadata?.annotations).toMatchObject({
      "prometheus.io/port": "9200",
      "prometheus.io/scheme": "https",
    });
    const schemes = ["lastcall", "lastcall-agent"].map((name) => {
      const monitor = made.get(`PodMonitor lastcall/${name}`) as unknown as {
        spec: { podMetricsEndpoints: [{ scheme: string }] };
      };
      return monitor.spec.podMetricsEndpoints[0].scheme;
    });
    expect(schemes).toEqual(["https", "http"]);
  });

  test("reject two replicas without leader election", () => {
    const controller = { options: { "leader-elect": false } };
    expect(refusal({ controller })).toContain("controller.options.leader-elect");
    expect(withValues({ controller: { ...controller, replicas: 1 } }).size).toBeGreaterThan(0);
  });
});

describe("names", () => {
  const values = {
    fullnameOverride: "spot",
    nameOverride: "spotty",
    serviceAccount: {
      name: "mine",
      annotations: { "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/r" },
    },
    agent: { options: { fallback: "Drain" }, serviceAccount: { name: "its" } },
    controller: { restartOwner: true },
    networkPolicy: { enabled: true },
    flowSchema: { enabled: true },
  };

  test("follow the values everywhere, except for what the program itself names", () => {
    const made = withValues(values);
    const left = [...made.values()]
      .filter(
        ({ kind, metadata }) =>
          kind !== "CustomResourceDefinition" && /lastcall/.test(metadata.name),
      )
      .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(left).toEqual(["PriorityClass lastcall-placeholder"]);
    const lines = JSON.stringify(
      [...made.values()].filter(({ kind }) => kind !== "CustomResourceDefinition"),
    );
    const account = made.get("ServiceAccount lastcall/mine");
    expect(account?.metadata).toMatchObject({ annotations: values.serviceAccount.annotations });
    const subjects = [...made.values()].flatMap(
      (one) => (one as unknown as { subjects?: { name: string }[] }).subjects ?? [],
    );
    expect(new Set(subjects.map(({ name }) => name))).toEqual(new Set(["mine", "its"]));
    // The program names the Lease, whatever the release is called.
    expect(lines).toContain('"resourceNames":["lastcall"]');
  });

  test("of existing accounts are used, and no accounts and roles are created", () => {
    const made = withValues({
      serviceAccount: { create: false, name: "theirs" },
      agent: { serviceAccount: { create: false, name: "theirs-too" } },
      rbac: { enable: false },
    });
    const kinds = [...made.values()].map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "ServiceAccount" || kind.includes("Role"))).toEqual([]);
    expect(podOf(made, "controller").serviceAccountName).toBe("theirs");
    expect(podOf(made, "agent").serviceAccountName).toBe("theirs-too");
  });

  test("are in the labels of every object, with those of the release", () => {
    const made = withValues({ ...values, extraLabels: { team: "infra" } }, "--skip-crds");
    for (const [key, { kind, metadata }] of made) {
      if (kind === "CustomResourceDefinition") continue;
      const { labels } = metadata as { labels?: Readonly<Record<string, string>> };
      expect(labels, key).toMatchObject({
        "app.kubernetes.io/name": "spotty",
        "app.kubernetes.io/instance": "lastcall",
        "app.kubernetes.io/managed-by": "Helm",
        "helm.sh/chart": "lastcall-0.1.0",
        team: "infra",
      });
    }
  });
});

describe("pods", () => {
  test("have the additions of the values", () => {
    const more = {
      nodeSelector: { pool: "system" },
      tolerations: [{ key: "system", operator: "Exists" }],
      podLabels: { "azure.workload.identity/use": "true" },
      podAnnotations: { note: "one" },
      extraVolumes: [{ name: "tls", secret: { secretName: "tls" } }],
      extraVolumeMounts: [{ name: "tls", mountPath: "/tls" }],
      extraEnv: { AWS_REGION: "eu-west-1", COUNT: 1000000 },
      resources: { limits: { memory: "512Mi" } },
    };
    const shared = { imagePullSecrets: [{ name: "pull" }] };
    const made = withValues({ ...more, ...shared, agent: more });
    for (const part of ["controller", "agent"] as const) {
      const pod = podOf(made, part);
      expect(pod).toMatchObject({
        nodeSelector: more.nodeSelector,
        tolerations: more.tolerations,
        volumes: more.extraVolumes,
        ...shared,
      });
      expect(pod.containers[0]?.volumeMounts).toEqual(more.extraVolumeMounts);
      expect(pod.containers[0]?.env).toEqual(
        expect.arrayContaining([
          { name: "AWS_REGION", value: "eu-west-1" },
          { name: "COUNT", value: "1000000" },
        ]),
      );
      expect(pod.containers[0]?.resources?.limits).toEqual({ memory: "512Mi" });
      expect(pod.containers[0]?.resources?.requests).toHaveProperty("cpu");
    }
    const agents = made.get("DaemonSet lastcall/lastcall-agent") as unknown as DaemonSet;
    expect(agents.spec?.template.metadata).toMatchObject({
      labels: more.podLabels,
      annotations: more.podAnnotations,
    });
  });

  test("run the given image, by tag or by digest", () => {
    const digest = `sha256:${"a".repeat(64)}`;
    const made = withValues({
      image: { repository: "registry.example:5000/lastcall", tag: "1.2.3" },
      agent: { image: { repository: "agents/lastcall", tag: "1.2.3", digest } },
    });
    expect(podOf(made, "controller").containers[0]?.image).toBe(
      "registry.example:5000/lastcall:1.2.3",
    );
    expect(podOf(made, "agent").containers[0]?.image).toBe(`agents/lastcall@${digest}`);
  });
});

const everything = {
  policies: [
    { name: "spot", spec: { lifetime: { min: "12h", max: "24h" }, budgets: [{ nodes: "10%" }] } },
  ],
  controller: { restartOwner: true, options: { "log-level": "debug" } },
  agent: { options: { fallback: "Drain" } },
  networkPolicy: { enabled: true },
  flowSchema: { enabled: true },
  grafanaDashboard: { enabled: true },
};

describe("monitoring", () => {
  test("renders the alerts, the monitors and the dashboard", () => {
    const made = withValues({
      metrics: {
        serviceMonitor: { enabled: true, labels: { release: "prometheus" }, interval: "15s" },
        prometheusRule: { enabled: true },
      },
      grafanaDashboard: { enabled: true },
    });
    const rule = made.get("PrometheusRule lastcall/lastcall") as unknown as {
      spec: { groups: [{ rules: { annotations: { summary: string } }[] }] };
    };
    expect(JSON.stringify(rule.spec.groups)).toContain("{{ $value }}");
    const monitor = made.get("ServiceMonitor lastcall/lastcall-agent") as unknown as {
      metadata: { labels: object };
      spec: { selector: { matchLabels: object }; endpoints: [{ interval: string; port: string }] };
    };
    expect(monitor.metadata.labels).toMatchObject({ release: "prometheus" });
    expect(monitor.spec.endpoints[0]).toMatchObject({ interval: "15s", port: "metrics" });
    const service = made.get("Service lastcall/lastcall-agent-metrics") as unknown as {
      metadata: { labels: object };
    };
    expect(service.metadata.labels).toMatchObject(monitor.spec.selector.matchLabels);
    const board = made.get("ConfigMap lastcall/lastcall-dashboard") as unknown as {
      data: Record<string, string>;
    };
    const shown = JSON.parse(board.data["lastcall.json"] ?? "").panels;
    expect(shown.map(({ title }: { title: string }) => title)).toEqual(
      panels.map(({ title }) => title),
    );
  });
});

describe("policies", () => {
  test("are those that the values name, by default none", () => {
    const policiesIn = (values: object) =>
      [...withValues(values).values()].filter(({ kind }) => kind === "DeparturePolicy");
    expect(policiesIn({})).toEqual([]);
    expect(policiesIn(everything)).toMatchObject([
      { metadata: { name: "spot" }, ...{ spec: everything.policies[0]?.spec } },
    ]);
  });

  test("must have unique names", () => {
    const one = { name: "spot", spec: {} };
    expect(refusal({ policies: [one, one] })).toContain("policies[1].name");
  });
});

describe("on a real API server", () => {
  let plane: ControlPlane;

  beforeAll(async () => {
    plane = await startControlPlane({ withKwok: false, withScheduler: false });
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    const metadata = { name: "lastcall", labels };
    await mustRun(plane, ["apply", "-f", "-"], { apiVersion: "v1", kind: "Namespace", metadata });
  });
  afterAll(() => plane?.stop());

  test("all objects are accepted, with a warning only for the agents' host network", async () => {
    const { kubeconfig } = plane;
    const file = join(home, "everything.yaml");
    writeFileSync(file, stringify(everything));
    const flags = ["--namespace", "lastcall", "--values", file];
    const { stderr, code } = helm(["upgrade", "--install", "lastcall", chart, ...flags], {
      home,
      kubeconfig,
    });
    expect(code, stderr).toBe(0);
    const warnings = stderr.split("\n").filter((line) => line.includes("violate PodSecurity"));
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain("host namespaces (hostNetwork=true), hostPort (container");
    const { stdout } = await plane.kubectl(["get", "dpol,flowschema", "-o", "name"]);
    expect(stdout).toContain("departurepolicy.lastcall.dev/spot");
    expect(stdout).toContain("flowschema.flowcontrol.apiserver.k8s.io/lastcall");
  });

  test("the policy that the notes show is accepted as it is copied, indented", async () => {
    const { kubeconfig } = plane;
    const flags = ["--namespace", "lastcall", "--reset-values", "--dry-run=server"];
    const { stdout } = helm(["upgrade", "lastcall", chart, ...flags], { home, kubeconfig });
    const [block = ""] = /^( {2}.*\n)+/m.exec(stdout.slice(stdout.indexOf("no policy yet"))) ?? [];
    const options = { input: block };
    expect(await plane.kubectl(["apply", "--dry-run=server", "-f", "-"], options)).toMatchObject({
      stdout: "departurepolicy.lastcall.dev/spot configured (server dry run)\n",
      code: 0,
    });
  });
});
