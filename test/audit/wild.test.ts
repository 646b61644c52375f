import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Finding } from "../../src/audit/report.ts";
import { auditYaml } from "./support/audit-yaml.ts";

/**
 * Found by reading the manifests: what is in them, and what is not. Cuts of the default grace,
 * which affect every workload on GKE that sets no grace, are only counted.
 */
const charts: readonly {
  readonly file: string;
  readonly found: readonly string[];
  readonly information?: readonly string[];
  readonly cutByDefault: number;
}[] = [
  {
    file: "ingress-nginx-ha.yaml",
    found: [
      "grace-cut Deployment ingress-nginx-ha-controller",
      "no-spread Deployment ingress-nginx-ha-controller",
    ],
    // It has readiness probes, the budget allows one of two pods, and the jobs are Helm hooks.
    cutByDefault: 2,
  },
  {
    file: "metrics-server.yaml",
    found: [
      "critical-on-spot Deployment metrics-server",
      "single-replica Deployment metrics-server",
    ],
    // Its emptyDir is a tmp-dir.
    cutByDefault: 1,
  },
  {
    file: "cert-manager-ha.yaml",
    found: [
      "no-spread Deployment cert-manager-ha",
      "no-spread Deployment cert-manager-ha-webhook",
      "single-replica Deployment cert-manager-ha-cainjector",
    ],
    // Only the webhook serves requests, and it has a readiness probe; other ports are for metrics.
    cutByDefault: 4,
  },
  {
    file: "dapr-ha.yaml",
    // Three replicas each, spread over zones, with budgets; its Configuration creates no
    // pods.
    found: [],
    cutByDefault: 5,
  },
  {
    file: "descheduler.yaml",
    found: [],
    information: ["long-job-on-spot CronJob descheduler"],
    cutByDefault: 1,
  },
  {
    file: "external-secrets.yaml",
    found: [
      "single-replica Deployment external-secrets",
      "single-replica Deployment external-secrets-cert-controller",
      "single-replica Deployment external-secrets-webhook",
    ],
    // The two that serve requests have readiness probes.
    cutByDefault: 3,
  },
  {
    file: "gatekeeper.yaml",
    found: [
      "critical-on-spot Deployment gatekeeper-audit",
      "critical-on-spot Deployment gatekeeper-controller-manager",
      "grace-cut Deployment gatekeeper-audit",
      "grace-cut Deployment gatekeeper-controller-manager",
      "single-replica Deployment gatekeeper-audit",
    ],
    // Three replicas prefer different nodes, in any zone; a budget keeps one.
    information: ["no-spread Deployment gatekeeper-controller-manager"],
    // Helm hooks.
    cutByDefault: 2,
  },
  {
    file: "istio-gateway.yaml",
    // Its readiness probe is injected, and its autoscaler starts at one.
    found: ["grace-cut Deployment istio-gateway", "single-replica Deployment istio-gateway"],
    cutByDefault: 0,
  },
  {
    file: "istio-ingress.yaml",
    found: ["single-replica Deployment istio-ingressgateway"],
    information: ["local-data Deployment istio-ingressgateway"],
    cutByDefault: 1,
  },
  {
    file: "loki-distributed.yaml",
    found: [
      "grace-cut Deployment loki-distributor",
      "grace-cut Deployment loki-gateway",
      "grace-cut Deployment loki-querier",
      "grace-cut Deployment loki-query-frontend",
      "grace-cut Deployment loki-query-scheduler",
      "grace-cut StatefulSet loki-chunks-cache",
      "grace-cut StatefulSet loki-compactor",
      "grace-cut StatefulSet loki-index-gateway",
      "grace-cut StatefulSet loki-ingester-zone-a",
      "grace-cut StatefulSet loki-ingester-zone-b",
      "grace-cut StatefulSet loki-ingester-zone-c",
      "grace-cut StatefulSet loki-results-cache",
      "grace-cut StatefulSet loki-ruler",
      "local-data StatefulSet loki-compactor",
      "local-data StatefulSet loki-index-gateway",
      "local-data StatefulSet loki-ingester-zone-a",
      "local-data StatefulSet loki-ingester-zone-b",
      "local-data StatefulSet loki-ingester-zone-c",
      "local-data StatefulSet loki-ruler",
      "single-replica Deployment loki-gateway",
      "single-replica StatefulSet loki-chunks-cache",
      "single-replica StatefulSet loki-compactor",
      "single-replica StatefulSet loki-results-cache",
    ],
    information: [
      "local-data Deployment loki-gateway",
      "local-data Deployment loki-querier",
      "no-spread Deployment loki-distributor",
      "no-spread Deployment loki-querier",
      "no-spread Deployment loki-query-frontend",
      "no-spread Deployment loki-query-scheduler",
      "no-spread StatefulSet loki-index-gateway",
      // One ingester per zone, with a budget for all three.
      "single-replica StatefulSet loki-ingester-zone-a",
      "single-replica StatefulSet loki-ingester-zone-b",
      "single-replica StatefulSet loki-ingester-zone-c",
    ],
    // A DaemonSet, and a test pod.
    cutByDefault: 2,
  },
];

describe("third-party charts have exactly these findings", () => {
  it.each(charts)("$file", async ({ file, found, information = [], cutByDefault }) => {
    const text = readFileSync(new URL(`../data/charts/${file}`, import.meta.url), "utf8");
    const { findings, notJudged } = await auditYaml(text, { platforms: ["gke"] });
    const info = findings.filter(({ severity }) => severity === "info");
    const cut = info.filter(({ rule }) => rule === "grace-cut");
    const named = (some: readonly Finding[]) =>
      some.map(({ rule, object }) => `${rule} ${object.replace("default/", "")}`).sort();

    expect(named(findings.filter(({ severity }) => severity !== "info"))).toEqual(found);
    expect(named(info.filter(({ rule }) => rule !== "grace-cut"))).toEqual(information);
    expect(cut).toHaveLength(cutByDefault);
    expect(notJudged).toEqual([]);
  });
});
