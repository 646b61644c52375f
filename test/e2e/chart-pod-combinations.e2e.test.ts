/**
 * Values of the pods combined at random: what the real Helm does not refuse keeps rules about what
 * a pod needs to start and to be reached, and about who gets its permissions.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Deployment } from "kubernetes-types/apps/v1.js";
import type { Container } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seededRng } from "../../src/core/chance/chance.ts";
import { parseQuantity } from "../../src/core/cluster/node.ts";
import {
  type Choices,
  type Part,
  portOf,
  type Rules,
  renderedIn,
  samples,
  tryCombinations,
} from "../support/chart-combinations.ts";

const seed = Number(process.env.E2E_SEED ?? 1);

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-pod-combinations-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const etc = { name: "etc", emptyDir: {} };
const mounted = { name: "etc", mountPath: "/etc/lastcall" };

/** Not given in half of the cases, so that most combinations of two remain. */
function sometimes(...some: readonly unknown[]): readonly unknown[] {
  return [...some.map(() => undefined), ...some];
}

/** The values of one part's pod, below `at`. */
function podChoices(at: string, part: "controller" | "agent"): Choices {
  const tls = { "metrics-cert-file": "/etc/lastcall/c", "metrics-key-file": "/etc/lastcall/k" };
  return {
    [`${part}.options`]: [
      ...sometimes({ "metrics-address": ":9201" }, { "metrics-address": "127.0.0.1:9201" }),
      ...sometimes({ "metrics-address": ":10250" }, { "health-address": ":88" }, tls),
      ...sometimes({ config: "/etc/lastcall/options.yaml" }, { filename: ["/etc/lastcall/p"] }),
    ].filter((one) => part === "controller" || !JSON.stringify(one ?? "").includes("filename")),
    [`${at}extraEnv`]: [
      ...sometimes({ GOOGLE_APPLICATION_CREDENTIALS: "/etc/lastcall/key.json" }),
      ...sometimes(["a", "b"].map((value) => ({ name: "REGION", value }))),
    ],
    [`${at}extraVolumes`]: [[etc], [etc], ...sometimes([etc, etc])],
    [`${at}extraVolumeMounts`]: [[mounted], [mounted], ...sometimes([mounted, mounted])],
    [`${at}resources.requests.memory`]: sometimes("200Mi"),
    [`${at}resources.limits.memory`]: sometimes("100000k", "1Gi"),
  };
}

const choices: Choices = {
  ...podChoices("", "controller"),
  ...podChoices("agent.", "agent"),
  "controller.enabled": [undefined, undefined, undefined, false],
  "agent.enabled": [undefined, undefined, undefined, false],
  imagePullSecrets: sometimes([{ name: "pull" }]),
  extraLabels: sometimes({ team: "infra" }, { "rbac.authorization.k8s.io/aggregate-to-edit": "" }),
  "secret.googleServiceAccountSecret.name": sometimes("key"),
  "metrics.podMonitor.enabled": sometimes(true),
  "metrics.serviceMonitor.enabled": sometimes(true),
};

function containerOf(part: Part): Container {
  return part.pod.containers[0] as Container;
}

/** A rule about each part that is installed. */
function ofEach(holds: (part: Part) => boolean): Rules[string] {
  return (_, parts) => Object.values(parts).every((part) => holds(part as Part));
}

const rules: Rules = {
  "no list that the API server merges by a key has one twice": ofEach((part) => {
    const { env = [], volumeMounts = [] } = containerOf(part);
    const lists = [
      env.map(({ name }) => name),
      volumeMounts.map(({ mountPath }) => mountPath),
      (part.pod.volumes ?? []).map(({ name }) => name),
      (part.pod.imagePullSecrets ?? []).map(({ name }) => name),
    ];
    return lists.every((names) => new Set(names).size === names.length);
  }),
  "what is mounted is a volume, and a file that is named is in one": ofEach((part) => {
    const { env = [], volumeMounts: mounts = [] } = containerOf(part);
    const volumes = new Set(part.pod.volumes?.map(({ name }) => name));
    const key = env.find(({ name }) => name === "GOOGLE_APPLICATION_CREDENTIALS")?.value;
    const { config, filename = [], metricsCertFile, metricsKeyFile } = part.options;
    const files = [config, filename, metricsCertFile, metricsKeyFile, key]
      .flat()
      .filter((file) => file !== undefined);
    return (
      mounts.every(({ name }) => volumes.has(name)) &&
      files.every((file) => mounts.some(({ mountPath }) => `${file}`.startsWith(`${mountPath}/`)))
    );
  }),
  "nobody else gets the permissions of the pods": (objects) =>
    objects.every(({ metadata }) => {
      const { name = "", labels = {} } = metadata as ObjectMeta;
      const added = Object.keys(labels).some((label) => label.startsWith("rbac."));
      return !added || name.endsWith("-view");
    }),
  "a pod requests no more than its limit": ofEach((part) => {
    const { requests = {}, limits = {} } = containerOf(part).resources ?? {};
    return Object.keys(limits).every(
      (name) => (parseQuantity(requests[name]) ?? 0) <= (parseQuantity(limits[name]) ?? 0),
    );
  }),
  "metrics that are to be scraped can be": (objects, parts) =>
    Object.entries(parts).every(([name, { options }]) => {
      if (!/^(127\.|\[::1\]|localhost)/.test(`${options.metricsAddress}`)) return true;
      const kind = name === "agent" ? "DaemonSet" : "Deployment";
      const own = objects.find((one) => one.kind === kind) as Deployment;
      const { annotations = {} } = own.spec?.template.metadata ?? {};
      const isMonitored = objects.some((one) => one.kind.endsWith("Monitor"));
      return annotations["prometheus.io/scrape"] === undefined && !isMonitored;
    }),
  "a pod may bind its ports, and agents leave the kubelet's alone": (_, parts) =>
    Object.entries(parts).every(([name, { options }]) => {
      const ports = [options.healthAddress, options.metricsAddress].map(portOf);
      return ports.every((port) => port >= 1024 && (name !== "agent" || port !== 10250));
    }),
};

describe(`values of pods combined at random, E2E_SEED=${seed}`, () => {
  test("are refused with a sentence, or make pods that keep every rule", () => {
    const { rendered, refused } = tryCombinations({
      choices,
      rules,
      made: (values) => renderedIn(home, { values, namespace: "lastcall" }),
      draw: seededRng(seed),
    });
    // Otherwise the rules were hardly tried.
    expect(rendered).toBeGreaterThan(samples / 12);
    expect(refused.size).toBeGreaterThan(4);
  });
});
