import { describe, expect, it } from "vitest";
import { deployment } from "./support/audit-yaml.ts";
import { remarks, withContainer } from "./support/rule-remarks.ts";

describe("a single replica that a budget counts together with others", () => {
  const zone = (name: string, container = "ingester", kind = "StatefulSet") =>
    `{apiVersion: apps/v1, kind: ${kind}, metadata: {name: ${name}}, spec: {replicas: 1, template: {metadata: {labels: {group: g}}, spec: {containers: [{name: ${container}, image: i}]}}}}\n---\n`;
  const budget =
    "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b}, spec: {maxUnavailable: 1, selector: {matchLabels: {group: g}}}}\n---\n";

  it.each([
    { other: zone("zone-b"), says: "info", why: "they run the same containers" },
    { other: zone("db", "db"), says: "warning", why: "the other has other containers" },
    {
      other: zone("web", "ingester", "Deployment"),
      says: "warning",
      why: "the other is a Deployment",
    },
    {
      other: zone("idle").replace("replicas: 1", "replicas: 0"),
      says: "warning",
      why: "the other is scaled to zero",
    },
    { other: "", says: "warning", why: "there is no other workload" },
    { other: zone("zone-a"), says: "warning", why: "the other is a copy of the same" },
  ])("is reported as $says, because $why", async ({ other, says }) => {
    const found = await remarks("single-replica", zone("zone-a") + other + budget);

    expect(found[0]?.split(" ")[0]).toBe(says);
  });

  it("is reported with the budget and the number of other replicas", async () => {
    const yaml = zone("zone-a") + zone("zone-b") + zone("zone-c") + budget;

    expect((await remarks("single-replica", yaml))[0]).toBe(
      "info The only replica is lost with its node; the PodDisruptionBudget b also counts 2 more of other workloads",
    );
    expect((await remarks("single-replica", zone("zone-a") + zone("zone-b")))[0]).toMatch(
      /^warning /,
    );
  });
});

it.each([
  { templates: "gateway", says: 0, why: "gets its probe from Istio's injection" },
  { templates: '"grpc-agent, gateway"', says: 0, why: "too, with another template" },
  { templates: "sidecar", says: 1, why: "is an application with a proxy next to it" },
])("a served pod with the injection $templates $why", async ({ templates, says }) => {
  const yaml = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: g}, spec: {template: {metadata: {annotations: {inject.istio.io/templates: ${templates}}}, spec: {containers: [{name: istio-proxy, image: auto, ports: [{containerPort: 80}]}]}}}}\n`;

  expect(await remarks("readiness-missing", yaml)).toHaveLength(says);
});

it.each([
  { api: "policy/v1", selector: "selector: {}", says: 1, why: "selects all" },
  { api: "policy/v1", selector: "paused: false", says: 0, why: "selects none" },
  {
    api: "policy/v1beta1",
    selector: "selector: {}",
    says: 0,
    why: "selected none in that version",
  },
  {
    api: "policy/v1beta1",
    selector: "selector: {matchLabels: {app: web}}",
    says: 1,
    why: "selects these",
  },
])("a second budget of $api with {$selector} $why", async ({ api, selector, says }) => {
  const pdb = (name: string, version: string, selects: string) =>
    `{apiVersion: ${version}, kind: PodDisruptionBudget, metadata: {name: ${name}}, spec: {maxUnavailable: 1, ${selects}}}\n---\n`;
  const one = pdb("a", "policy/v1", "selector: {matchLabels: {app: web}}");
  const yaml = one + pdb("b", api, selector) + deployment({});

  expect(await remarks("two-pdbs", yaml)).toHaveLength(says);
});

describe("local data", () => {
  const mount = (name: string, path: string, more = "") =>
    `volumeMounts: [{name: ${name}, mountPath: ${path}${more}}]`;
  const volume = (name: string, source: string) => `volumes: [{name: ${name}, ${source}}],`;

  it.each([
    { name: "data", source: "emptyDir: {}", path: "/var/lib/x", says: "warning" },
    { name: "data", source: "emptyDir: {}", path: "/usr/local/etc/haproxy", says: undefined },
    { name: "store", source: "emptyDir: {}", path: "/srv", says: "info" },
    { name: "cache", source: "emptyDir: {}", path: "/var/cache", says: undefined },
    { name: "tmp-volume", source: "emptyDir:", path: "/tmp", says: undefined },
    { name: "data", source: "emptyDir: {medium: Memory}", path: "/x", says: undefined },
    { name: "host", source: "hostPath: {path: /srv/files}", path: "/x", says: "warning" },
    { name: "logs", source: "hostPath: {path: /var/log/app.log}", path: "/x", says: undefined },
    { name: "socket", source: "hostPath: {path: /run/docker.sock}", path: "/x", says: undefined },
    { name: "claim", source: "persistentVolumeClaim: {claimName: c}", path: "/x", says: undefined },
    // The API server makes a volume without a source an emptyDir; null is no source.
    { name: "data", source: "", path: "/x", says: "warning" },
    { name: "tmp", source: "", path: "/tmp", says: undefined },
    { name: "data", source: "emptyDir:", path: "/x", says: "warning" },
    { name: "data", source: "hostPath: null", path: "/x", says: "warning" },
    {
      name: "data",
      source: "emptyDir: null, persistentVolumeClaim: {claimName: c}",
      path: "/x",
      says: undefined,
    },
    // An unknown source may be one of a later Kubernetes version.
    { name: "data", source: "laterSource: {}", path: "/x", says: undefined },
  ])("$name from $source on $path: $says", async ({ name, source, path, says }) => {
    const found = await remarks(
      "local-data",
      withContainer(mount(name, path), volume(name, source), "StatefulSet"),
    );

    expect(found[0]?.split(" ")[0]).toBe(says);
  });

  it.each([
    { kind: "Deployment", says: "info", why: "each rollout empties it too" },
    { kind: "ReplicaSet", says: "warning", why: "nothing else does" },
    { kind: "StatefulSet", says: "warning", why: "its pods are meant to keep something" },
    { kind: "DaemonSet", says: undefined, why: "it belongs to its node" },
  ])("an emptyDir of data in a $kind is $says, because $why", async ({ kind, says }) => {
    const yaml = withContainer(mount("data", "/var/lib/x"), volume("data", "emptyDir: {}"), kind);

    expect((await remarks("local-data", yaml))[0]?.split(" ")[0]).toBe(says);
  });

  it.each([
    { claim: "data", says: undefined, why: "its controller replaces it with the claim" },
    { claim: "other", says: "warning", why: "nothing replaces it" },
  ])(
    "a volume beside the claim template $claim is $says, because $why",
    async ({ claim, says }) => {
      const yaml = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}, spec: {volumeClaimTemplates: [{metadata: {name: ${claim}}}], template: {spec: {volumes: [{name: data}], containers: [{name: m, image: m, volumeMounts: [{name: data, mountPath: /x}]}]}}}}\n`;

      expect((await remarks("local-data", yaml))[0]?.split(" ")[0]).toBe(says);
    },
  );

  it("a host path that is mounted read-only is not reported", async () => {
    const yaml = withContainer(
      mount("host", "/x", ", readOnly: true"),
      volume("host", "hostPath: {path: /srv/files}"),
    );

    expect(await remarks("local-data", yaml)).toEqual([]);
  });
});

describe("a job", () => {
  const job = (spec: string) =>
    `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {${spec} template: {spec: {restartPolicy: Never, containers: [{name: m, image: m}]}}}}\n`;

  it.each([
    { spec: "", says: "info" },
    { spec: "activeDeadlineSeconds: 600,", says: undefined },
    { spec: "activeDeadlineSeconds: 3600,", says: undefined },
    { spec: "activeDeadlineSeconds: 3601,", says: "warning" },
    { spec: "activeDeadlineSeconds: 600, backoffLimit: 0,", says: "warning" },
  ])("with {$spec} is reported as $says", async ({ spec, says }) => {
    expect((await remarks("long-job-on-spot", job(spec)))[0]?.split(" ")[0]).toBe(says);
  });
});

describe("a workload that is recreated anyway", () => {
  const hook = (key: string) =>
    `{apiVersion: batch/v1, kind: Job, metadata: {name: j, annotations: {"${key}": pre-install}}, spec: {template: {spec: {restartPolicy: Never}}}}\n`;

  it.each(["helm.sh/hook", "argocd.argoproj.io/hook"])(
    "a job with %s needs no deadline",
    async (key) => {
      expect(await remarks("long-job-on-spot", hook(key))).toEqual([]);
    },
  );

  it.each([
    { kind: "Deployment", flagged: 1 },
    { kind: "DaemonSet", flagged: 0 },
  ])("a critical $kind is flagged: $flagged", async ({ kind, flagged }) => {
    const yaml = withContainer("args: []", "priorityClassName: system-cluster-critical,", kind);

    expect(await remarks("critical-on-spot", yaml)).toHaveLength(flagged);
  });

  it("a critical job is not flagged", async () => {
    const yaml =
      "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: {priorityClassName: system-cluster-critical, restartPolicy: Never}}}}\n";

    expect(await remarks("critical-on-spot", yaml)).toEqual([]);
  });
});

describe("spreading replicas", () => {
  const apart = (labels: string, more = "") =>
    `affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {${labels}}}${more}}}]}}`;

  it.each([
    { pod: apart("app: web"), nothing: 0 },
    { pod: apart("app: other"), nothing: 0, beside: "other", together: 2 },
    { pod: apart("app: gone"), nothing: 1 },
    { pod: apart("app: gone", ", namespaces: [far]"), nothing: 0 },
    { pod: apart("app: gone", ", namespaces: null"), nothing: 1 },
    { pod: apart("app: gone", ", namespaceSelector: {}"), nothing: 0 },
    { pod: apart("app: gone", ", namespaceSelector: null"), nothing: 1 },
    { pod: "topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1}]", nothing: 1 },
  ])(
    "$pod selects nothing: $nothing",
    async ({ pod, nothing, beside = "beside", together = 1 }) => {
      const yaml = `${deployment({ pod })}---\n${deployment({ name: beside })}`;

      expect(await remarks("spread-selects-nothing", yaml)).toHaveLength(nothing);
      const found = await remarks("no-spread", yaml);
      expect(found.filter((one) => one.startsWith("warning"))).toHaveLength(together);
    },
  );

  it.each([
    { label: "job-name: j", nothing: 0 },
    { label: "batch.kubernetes.io/job-name: j", nothing: 0 },
    { label: "job-name: k", nothing: 1 },
  ])("for the Job j by {$label} selects nothing: $nothing", async ({ label, nothing }) => {
    const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 3, template: {spec: {restartPolicy: Never, containers: [{name: m}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {${label}}}}]}}}}\n`;

    expect(await remarks("spread-selects-nothing", job)).toHaveLength(nothing);
  });

  const spread = (...keys: string[]) =>
    `topologySpreadConstraints: [${keys.map((key) => `{maxSkew: 1, topologyKey: ${key}, labelSelector: {matchLabels: {app: web}}}`).join(", ")}]`;
  const zone = "topology.kubernetes.io/zone";

  it.each([
    { pod: "restartPolicy: Always", says: "warning … one node" },
    { pod: spread("kubernetes.io/hostname"), says: "info … one zone" },
    { pod: apart("app: web"), says: "info … one zone" },
    { pod: spread(zone), says: undefined },
    { pod: spread("kubernetes.io/hostname", zone), says: undefined },
    { pod: apart("app: web").replace("kubernetes.io/hostname", zone), says: undefined },
    { pod: apart("app: gone"), says: undefined },
  ])("by {$pod} leaves $says", async ({ pod, says }) => {
    const [found] = await remarks("no-spread", deployment({ pod }));

    expect(found?.replace(/ .*(one \w+)$/, " … $1")).toBe(says);
  });
});
