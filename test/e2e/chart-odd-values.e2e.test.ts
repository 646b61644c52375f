/**
 * Values left empty, names that YAML reads as another type, duplicates, and Helm without a cluster
 * that tells its version of Kubernetes: with the real Helm.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { readChartValues } from "../../tools/chart-values.ts";
import { chart, helm, type Manifest, manifestsIn, oldest, renderer } from "../support/helm.ts";

let home: string;
let render: ReturnType<typeof renderer>;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-odd-values-"));
  render = renderer(home);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

type Made = ReadonlyMap<string, Manifest>;

/** Enables all that is optional. */
const everything = {
  metrics: {
    serviceMonitor: { enabled: true },
    podMonitor: { enabled: true },
    prometheusRule: { enabled: true },
  },
  ...{ grafanaDashboard: { enabled: true }, networkPolicy: { enabled: true } },
  flowSchema: { enabled: true },
};

function fileOf(values: object): string {
  const file = join(home, "values.yaml");
  writeFileSync(file, stringify(values));
  return file;
}

function withValues(values: object, ...flags: readonly string[]): Made {
  return render("--values", fileOf(values), ...flags);
}

/** `{agent: {resources: null}}` for `agent.resources`. */
function emptied(path: string): object {
  return (
    path.split(".").reduceRight((inner: object | null, name) => ({ [name]: inner }), null) ?? {}
  );
}

const paths = readChartValues();
const sections = [
  ...new Set(
    paths.flatMap(({ path }) => (path.includes(".") ? path.slice(0, path.lastIndexOf(".")) : [])),
  ),
];

describe("empty values, such as a key whose lines are commented out", () => {
  test("of sections and scalars count as not given", () => {
    const usual = withValues({});
    const single = paths.filter((one) => typeof (one.default ?? {}) !== "object");
    expect(single.length).toBeGreaterThan(20);
    for (const path of [...sections, ...single.map((one) => one.path)]) {
      expect(withValues(emptied(path)), path).toEqual(usual);
    }
  });

  test("are accepted all at once", () => {
    const all = Object.fromEntries(paths.map(({ path }) => [path.split(".")[0], null]));
    const maps = { resources: null, podSecurityContext: null, securityContext: null };
    expect(withValues(all)).toEqual(withValues(maps));
  });

  test("of maps and lists remove the chart's defaults, as in other Helm charts", () => {
    const made = withValues({ ...emptied("resources"), podSecurityContext: null });
    const [container] = podIn(made).containers;
    expect(container?.resources).toEqual({});
    expect(podIn(made).securityContext).toEqual({});
    const agents = JSON.stringify(withValues(emptied("agent.tolerations")).get(agentKey));
    expect(agents).not.toContain('"tolerations"');
  });

  test("of metricsFrom allow nobody to scrape", () => {
    const { enabled } = everything.networkPolicy;
    for (const metricsFrom of [[], null]) {
      const made = withValues({ networkPolicy: { enabled, metricsFrom } });
      for (const name of ["lastcall", "lastcall-agent"]) {
        const { spec } = made.get(`NetworkPolicy lastcall/${name}`) as unknown as {
          spec: { policyTypes: readonly string[]; ingress?: readonly unknown[] | null };
        };
        expect(spec.policyTypes).toContain("Ingress");
        expect(spec.ingress ?? []).toEqual([]);
      }
    }
  });
});

const agentKey = "DaemonSet lastcall/lastcall-agent";

function podIn(made: Made) {
  const { spec } = made.get("Deployment lastcall/lastcall") as unknown as {
    spec: {
      template: {
        spec: { securityContext: object; containers: readonly { resources: object }[] };
      };
    };
  };
  return spec.template.spec;
}

/** All values under one of these keys, in any object. */
function under(keys: readonly string[], value: unknown): readonly unknown[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [
    ...(keys.includes(key) ? [inner] : []),
    ...under(keys, inner),
  ]);
}

test.each(["123", "true", "1e3", "null", "0x1f"])(
  "names that YAML would read as another type stay strings: %s",
  (odd) => {
    // One account for both is refused.
    const other = odd === "123" ? "456" : "123";
    const made = withValues(
      {
        ...everything,
        ...{ nameOverride: odd, priorityClassName: odd },
        ...{ serviceAccount: { name: odd }, agent: { serviceAccount: { name: other } } },
        policies: [{ name: odd, spec: {} }],
        extraEnv: { [odd]: 1 },
      },
      ...["--namespace", odd],
    );
    const keys = ["name", "namespace", "serviceAccountName", "priorityClassName", "policyName"];
    const labels = ["app.kubernetes.io/name", "app.kubernetes.io/instance"];
    const found = under([...keys, ...labels], [...made.values()]);
    // Objects are fields with such a name, as in the CRDs.
    const others = found.filter((one) => typeof one !== "string" && typeof one !== "object");
    expect(others).toEqual([]);
    expect(new Set(found)).toContain(odd);
  },
);

describe("the Kubernetes version", () => {
  function template(...flags: readonly string[]) {
    return helm(["template", "lastcall", chart, "--namespace", "lastcall", ...flags], { home });
  }

  test("is not checked without a cluster, because Helm then uses a default of its own", () => {
    const { stdout, stderr, code } = template();
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    expect(manifestsIn(stdout)).toEqual(manifestsIn(template("--kube-version", oldest).stdout));
  });

  test("of a cluster before 1.30 is rejected", () => {
    // API versions are the sign of a cluster; Argo CD passes them as well.
    const cluster = ["--api-versions", "v1/Namespace", "--kube-version"];
    const { stderr, code } = template(...cluster, "1.29.12");
    expect(code).toBe(1);
    expect(stderr).toContain("found v1.29.12, expected 1.30 or later");
    for (const version of [oldest, "1.30.0-eks-1234", "1.33.2-gke.1"]) {
      expect(template(...cluster, version).stderr, version).toBe("");
    }
  });
});

test.each(["127.0.0.1:8080", "localhost:8080", "[::1]:8080"])(
  "an address that the kubelet cannot probe is rejected: --health-address %s",
  (address) => {
    const options = { "health-address": address };
    expect(() => withValues({ controller: { options } })).toThrow(
      `controller.options.health-address: found "${address}", expected an address that the kubelet`,
    );
    expect(() => withValues({ agent: { options } })).not.toThrow();
  },
);

describe("a duplicate", () => {
  test.each([
    ["controller", "health-address", ":9101", "port 9101"],
    ["controller", "metrics-address", "127.0.0.1:8080", "port 8080"],
    ["agent", "metrics-address", ":8087", "port 8087"],
  ])("is rejected if it is an address of the %s: --%s %s", (part, name, value, told) => {
    const made = () => withValues({ [part]: { options: { [name]: value } } });
    expect(made).toThrow(
      `${part}.options.metrics-address: found the ${told} for both this and health-address`,
    );
  });

  test("is allowed as a label: that of one object overrides that of every object", () => {
    const labels = { team: "observability", "app.kubernetes.io/name": "mine" };
    const on = { enabled: true, labels };
    const made = withValues({
      extraLabels: { team: "infra", cost: "shared" },
      metrics: { serviceMonitor: on, podMonitor: on, prometheusRule: on },
      grafanaDashboard: on,
    });
    const own = [...made.values()].filter(({ kind, metadata: { name } }) => {
      return /Monitor|PrometheusRule/.test(kind) || name === "lastcall-dashboard";
    });
    expect(own).toHaveLength(6);
    for (const { metadata } of own) {
      expect(metadata).toMatchObject({ labels: { ...labels, cost: "shared" } });
    }
  });

  test("is rejected if it is an environment variable, as by server-side apply", () => {
    for (const part of ["controller", "agent"] as const) {
      const key = part === "agent" ? agentKey : "Deployment lastcall/lastcall";
      const [env = []] = under(["env"], withValues({}).get(key)) as readonly { name: string }[][];
      const names = env.map(({ name }) => name);
      expect(names.length).toBeGreaterThan(4);
      for (const name of names) {
        for (const extraEnv of [{ [name]: "x" }, [{ name, value: "x" }]]) {
          const values = part === "agent" ? { agent: { extraEnv } } : { extraEnv };
          expect(() => withValues(values), name).toThrow(
            `extraEnv.${name}: the chart sets this variable`,
          );
        }
      }
    }
  });
});
