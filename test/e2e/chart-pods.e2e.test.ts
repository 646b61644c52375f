/**
 * Values that are valid one by one, with which a pod could not start, would not be reached, or with
 * which others would get Lastcall's permissions: the real Helm refuses them, with one sentence that
 * names the value and what to set.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { chart, helm, oldest } from "../support/helm.ts";

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-pods-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

function errorOf(values: object): string {
  const file = join(home, "values.yaml");
  writeFileSync(file, stringify(values));
  const flags = ["--namespace", "lastcall", "--kube-version", oldest, "--values", file];
  const { stderr, code } = helm(["template", "lastcall", chart, ...flags], { home });
  expect(code === 0).toBe(stderr === "");
  return stderr;
}

/** The message without the place in the templates; empty if the chart accepts the values. */
function refusalOf(values: object): string {
  return (
    errorOf(values)
      .replace(/^.*?\): /s, "")
      .split("\n")[0] ?? ""
  );
}

const parts = ["controller", "agent"] as const;
type Part = (typeof parts)[number];

/** The values of a part's pod, which are at the top for the controller. */
const podOf = (part: Part, values: object) => (part === "agent" ? { agent: values } : values);
const at = (part: Part) => (part === "agent" ? "agent." : "");

describe.each(parts)("of the %s", (part) => {
  const optionsOf = (options: object) => ({ [part]: { options } });

  test.each([":80", "0.0.0.0:443", "127.0.0.1:1023"])(
    "an address with a port that only root may bind is refused: %s",
    (address) => {
      expect(refusalOf(optionsOf({ "metrics-address": address }))).toMatch(
        `${part}.options.metrics-address: found the port ${address.split(":").at(-1)}, which only root may use, expected one from 1024 on`,
      );
    },
  );

  test("an address of one machine is refused, because every pod has another one", () => {
    for (const address of ["10.0.0.1:9101", "[fd00::1]:9101"]) {
      expect(refusalOf(optionsOf({ "metrics-address": address }))).toBe(
        `${part}.options.metrics-address: found "${address}", which one machine has at most, expected an address of every pod, such as :9101`,
      );
    }
    for (const address of ["0.0.0.0:9201", "[::]:9201", "localhost:9201", "[$(POD_IP)]:9201"]) {
      expect(refusalOf(optionsOf({ "metrics-address": address })), address).toBe("");
    }
  });

  test.each(["serviceMonitor", "podMonitor"])(
    "metrics on a loopback address are refused with a %s",
    (monitor) => {
      const metrics = { [monitor]: { enabled: true } };
      for (const address of ["127.0.0.1:9101", "[::1]:9101", "localhost:9101"]) {
        const values = { ...optionsOf({ "metrics-address": address }), metrics };
        expect(refusalOf(values)).toBe(
          `${part}.options.metrics-address: found "${address}", which Prometheus does not reach, with metrics.${monitor}.enabled, expected an address such as :9101`,
        );
      }
    },
  );

  test.each(["metrics-cert-file", "metrics-key-file", "config"])(
    "a file that no volume contains is refused: --%s",
    (option) => {
      const pair = { "metrics-cert-file": "/tls/tls.crt", "metrics-key-file": "/tls/tls.key" };
      const options = option === "config" ? { config: "/tls/lastcall.yaml" } : pair;
      const volume = { name: "tls", secret: { secretName: "tls" } };
      const mounted = (mountPath: string) => ({
        ...podOf(part, {
          extraVolumes: [volume],
          extraVolumeMounts: [{ name: "tls", mountPath }],
        }),
      });
      const values = (mountPath: string) => {
        const { agent = {}, ...others } = mounted(mountPath) as { agent?: object };
        return part === "agent"
          ? { agent: { ...agent, options } }
          : { ...others, controller: { options } };
      };
      const said = `${part}.options.${option === "config" ? option : "metrics-cert-file"}: found "`;
      expect(refusalOf(optionsOf(options))).toContain(said);
      expect(refusalOf(values("/tl"))).toContain(said);
      expect(refusalOf(values("/tls"))).toBe("");
      expect(refusalOf(values("/tls/"))).toBe("");
    },
  );

  test("a variable that names a file is refused like the option", () => {
    for (const extraEnv of [
      { LASTCALL_CONFIG: "/etc/lastcall.yaml" },
      [{ name: "GOOGLE_APPLICATION_CREDENTIALS", value: "/key.json" }],
    ]) {
      const [name, path] = Array.isArray(extraEnv)
        ? [extraEnv[0]?.name, extraEnv[0]?.value]
        : (Object.entries(extraEnv)[0] ?? []);
      expect(refusalOf(podOf(part, { extraEnv }))).toBe(
        `${at(part)}extraEnv.${name}: found "${path}", which no volume contains, expected a mount for it in ${at(part)}extraVolumeMounts`,
      );
    }
    const injected = { "vault.hashicorp.com/agent-inject": "true" };
    const extraEnv = { LASTCALL_CONFIG: "/vault/secrets/lastcall.yaml" };
    expect(refusalOf(podOf(part, { extraEnv, podAnnotations: injected }))).toBe("");
  });

  test.each<[string, object, string]>([
    [
      "variables",
      { extraEnv: [1, 2].map((value) => ({ name: "REGION", value: `${value}` })) },
      'extraEnv: found the name "REGION" twice',
    ],
    [
      "volumes",
      { extraVolumes: [{ name: "tmp" }, { name: "tmp" }] },
      'extraVolumes: found the name "tmp" twice',
    ],
    [
      "mounts",
      {
        extraVolumes: [{ name: "tmp" }],
        extraVolumeMounts: [1, 2].map(() => ({ name: "tmp", mountPath: "/tmp" })),
      },
      'extraVolumeMounts: found the mountPath "/tmp" twice',
    ],
  ])("two %s of one name are refused, as by server-side apply", (_, values, said) => {
    expect(refusalOf(podOf(part, values))).toBe(
      `${at(part)}${said}, expected each once, because the API server merges the list by it`,
    );
  });

  test("a mount of a volume that does not exist is refused", () => {
    const extraVolumeMounts = [{ name: "tls", mountPath: "/tls" }];
    expect(refusalOf(podOf(part, { extraVolumeMounts }))).toBe(
      `${at(part)}extraVolumeMounts: found a mount of the volume "tls", expected the volume in ${at(part)}extraVolumes`,
    );
  });

  test.each(["/", "/var/run/secrets/kubernetes.io/serviceaccount"])(
    "a mount that hides what the pod needs is refused: %s",
    (mountPath) => {
      const values = (source: object) =>
        podOf(part, {
          extraVolumes: [{ name: "own", ...source }],
          extraVolumeMounts: [{ name: "own", mountPath }],
        });
      const what = mountPath === "/" ? "the program" : "the token of the ServiceAccount";
      expect(refusalOf(values({ emptyDir: {} }))).toBe(
        `${at(part)}extraVolumeMounts: found the mountPath "${mountPath}", which hides ${what}, expected another one`,
      );
      // Such a volume may contain a token.
      const said = refusalOf(values({ projected: { sources: [] } }));
      expect(said === "").toBe(mountPath !== "/");
    },
  );

  test("root is refused where the kubelet starts no container of root", () => {
    const root = { runAsUser: 0 };
    const inPod = `${at(part)}podSecurityContext.runAsUser`;
    const said = "found 0 with runAsNonRoot, expected another user, or runAsNonRoot: false";
    expect(refusalOf(podOf(part, { podSecurityContext: root }))).toBe(`${inPod}: ${said}`);
    expect(refusalOf(podOf(part, { securityContext: root }))).toBe(
      `${at(part)}securityContext.runAsUser: ${said}`,
    );
    const free = { podSecurityContext: { runAsUser: 0, runAsNonRoot: false } };
    expect(refusalOf(podOf(part, free))).toBe("");
    const other = { podSecurityContext: root, securityContext: { runAsUser: 1000 } };
    expect(refusalOf(podOf(part, other))).toBe("");
  });

  test("a privileged container is refused with the default that forbids more privileges", () => {
    const securityContext = { privileged: true };
    expect(refusalOf(podOf(part, { securityContext }))).toBe(
      `${at(part)}securityContext.privileged: found true with allowPrivilegeEscalation: false, the default, expected one of them`,
    );
    const both = { ...securityContext, allowPrivilegeEscalation: true };
    expect(refusalOf(podOf(part, { securityContext: both }))).toBe("");
  });

  test("a variable with a value and a reference is refused", () => {
    const extraEnv = [{ name: "TOKEN", value: "x", valueFrom: { secretKeyRef: { name: "s" } } }];
    expect(refusalOf(podOf(part, { extraEnv }))).toBe(
      `${at(part)}extraEnv.TOKEN: found value and valueFrom, expected one of them`,
    );
  });

  test.each([
    [{ limits: { memory: "32Mi" } }, "memory", "32Mi"],
    [{ requests: { memory: "1Gi" } }, "memory", "1Gi"],
    [{ limits: { cpu: 0 } }, "cpu", "0"],
    [{ requests: { memory: "1G" }, limits: { memory: "953Mi" } }, "memory", "953Mi"],
    [{ requests: { cpu: 1 }, limits: { cpu: "999m" } }, "cpu", "999m"],
    [{ requests: { cpu: "1e1" }, limits: { cpu: "1001m" } }, "cpu", "1001m"],
    [
      { requests: { "ephemeral-storage": "1Ti" }, limits: { "ephemeral-storage": "1T" } },
      "ephemeral-storage",
      "1T",
    ],
  ])("a request above its limit is refused: %j", (resources, name, told) => {
    const said = refusalOf(podOf(part, { resources }));
    expect(said).toMatch(
      new RegExp(
        `^${at(part)}resources.requests.${name}: found \\S+, expected at most resources.limits.${name}, which is \\S+$`,
      ),
    );
    expect(said).toContain(told);
  });

  test.each([
    { requests: { memory: "1G" }, limits: { memory: "954Mi" } },
    { requests: { cpu: 0.1 }, limits: { cpu: "100m", memory: "1e9" } },
    { requests: { cpu: "100m" }, limits: { memory: "256Mi", cpu: 1 } },
  ])("a request up to its limit is accepted: %j", (resources) => {
    expect(refusalOf(podOf(part, { resources }))).toBe("");
  });
});

describe("of the agents, which use the node's network", () => {
  test.each([
    ["metrics-address", ":10250"],
    ["notice-address", "127.0.0.1:10248"],
    ["health-address", ":10256"],
  ])("a port that the node's own components have is refused: --%s %s", (option, address) => {
    const port = address.split(":")[1];
    expect(refusalOf({ agent: { options: { [option]: address } } })).toBe(
      `agent.options.${option}: found the port ${port}, which Kubernetes itself uses on every node, expected another one`,
    );
  });

  test("an address that only the pod's own variables complete is refused where it is probed", () => {
    const address = "[$(NODE_IP)]:8087";
    expect(refusalOf({ agent: { options: { "health-address": address } } })).toBe(
      `agent.options.health-address: found "${address}", expected an address without a variable, because the kubelet probes it as it is written`,
    );
    expect(refusalOf({ agent: { options: { "metrics-address": "[$(NODE_IP)]:9200" } } })).toBe("");
  });

  test.each([
    [{ maxSurge: 1 }, "maxSurge: found 1, expected none, because the old and the new agent"],
    [{ maxSurge: "10%", maxUnavailable: 0 }, "maxSurge: found 10%, expected none"],
    [{ maxUnavailable: 0 }, "maxUnavailable: found 0, expected at least 1, because"],
    [{ maxUnavailable: "0%" }, "maxUnavailable: found 0%, expected at least 1, because"],
  ])("an update that would never go on is refused: %j", (rollingUpdate, told) => {
    expect(refusalOf({ agent: { updateStrategy: { rollingUpdate } } })).toContain(
      `agent.updateStrategy.rollingUpdate.${told}`,
    );
    expect(refusalOf({ agent: { updateStrategy: { type: "OnDelete" } } })).toBe("");
    const one = { maxSurge: 0, maxUnavailable: 1 };
    expect(refusalOf({ agent: { updateStrategy: { rollingUpdate: one } } })).toBe("");
  });

  test("a low port is accepted if they are root and may bind it, and never by a sysctl", () => {
    const options = { "metrics-address": ":80" };
    const root = { runAsNonRoot: false, runAsUser: 0 };
    const sysctls = [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }];
    const bound = { capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE"] } };
    const made = (agent: object) => refusalOf({ agent: { options, ...agent } });
    const port = "net.ipv4.ip_unprivileged_port_start";
    expect(refusalOf({ agent: { podSecurityContext: { sysctls } } })).toBe(
      `agent.podSecurityContext.sysctls: found ${port}, expected none of the network, which is the node's`,
    );
    expect(made({ podSecurityContext: root, securityContext: bound })).toBe("");
    expect(made({ podSecurityContext: root })).toContain("found the port 80");
    expect(made({ securityContext: bound })).toContain("found the port 80");
    expect(made({ podSecurityContext: { sysctls } })).toContain("found the port 80");
  });
});

describe("of the controller, which has a network of its own", () => {
  test("a low port is accepted with the sysctl that allows it", () => {
    const sysctls = (value: string) => ({
      controller: { options: { "metrics-address": ":80" } },
      podSecurityContext: { sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value }] },
    });
    expect(refusalOf(sysctls("80"))).toBe("");
    expect(refusalOf(sysctls("81"))).toContain(
      "or podSecurityContext.sysctls with net.ipv4.ip_unprivileged_port_start",
    );
    const options = { "metrics-address": ":10250" };
    expect(refusalOf({ controller: { options } })).toBe("");
  });

  const key = { secret: { googleServiceAccountSecret: { name: "key" } } };

  test.each<[string, object, string]>([
    [
      "its key file's variable",
      { extraEnv: { GOOGLE_APPLICATION_CREDENTIALS: "/other.json" } },
      "extraEnv.GOOGLE_APPLICATION_CREDENTIALS: the chart sets this variable",
    ],
    [
      "its key file's volume",
      { extraVolumes: [{ name: "gcp-service-account-secret" }] },
      'extraVolumes: found the name "gcp-service-account-secret" twice',
    ],
    [
      "its key file's mount",
      {
        extraVolumes: [{ name: "own" }],
        extraVolumeMounts: [{ name: "own", mountPath: "/gcp-service-account" }],
      },
      'extraVolumeMounts: found the mountPath "/gcp-service-account" twice',
    ],
  ])("%s a second time is refused", (_, values, said) => {
    expect(refusalOf({ ...key, ...values })).toContain(said);
  });
});

test.each([
  [{ name: "Key_File" }, "name"],
  [{ name: "key", key: "a/b" }, "key"],
])("a name that no Secret has is refused: %j", (googleServiceAccountSecret, field) => {
  const values = { secret: { googleServiceAccountSecret } };
  expect(errorOf(values)).toContain(`at '/secret/googleServiceAccountSecret/${field}': `);
});

test("two pull secrets of one name are refused", () => {
  expect(refusalOf({ imagePullSecrets: [{ name: "pull" }, { name: "pull" }] })).toBe(
    'imagePullSecrets: found the name "pull" twice, expected each once, because the API server merges the list by it',
  );
});

test.each([
  ["", { image: { repository: "registry.example.com:5000/ops/lastcall:1.2" } }],
  ["agent.", { agent: { image: { repository: "lastcall-agent:1.2" } } }],
])("a tag in the repository is refused, because the chart adds one: %simage", (of, values) => {
  expect(refusalOf(values)).toBe(
    `${of}image.repository: found the tag 1.2 in it, expected it in ${of}image.tag`,
  );
});

test("a registry with a port is no tag", () => {
  const image = { repository: "registry.example.com:5000/ops/lastcall" };
  expect(refusalOf({ image, agent: { image } })).toBe("");
});

test.each([
  ["fullnameOverride", "edit"],
  ["nameOverride", "view"],
  ["fullnameOverride", "admin"],
  ["nameOverride", "cluster-admin"],
])("a name that Kubernetes' own roles have is refused: %s=%s", (value, name) => {
  expect(refusalOf({ [value]: name })).toBe(
    `${value}: found "${name}", the name of a ClusterRole of Kubernetes itself, expected another one, because the chart would replace what it permits`,
  );
});

test.each(["aggregate-to-edit", "aggregate-to-view", "aggregate-to-admin"])(
  "a label that would give Lastcall's permissions to users is refused: %s",
  (label) => {
    const name = `rbac.authorization.k8s.io/${label}`;
    expect(refusalOf({ extraLabels: { [name]: "true" } })).toBe(
      `extraLabels.${name}: found a label by which Kubernetes adds the permissions of the controller and the agents to roles of users, expected none: label the ClusterRole lastcall-edit itself`,
    );
  },
);

test("of a part that is not installed, no value is refused", () => {
  const bad = { extraVolumes: [{ name: "tmp" }, { name: "tmp" }] };
  expect(refusalOf({ agent: { enabled: false, ...bad } })).toBe("");
  expect(refusalOf({ controller: { enabled: false }, ...bad })).toBe("");
});
