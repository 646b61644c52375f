import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { auditYaml } from "./support/audit-yaml.ts";

/**
 * Found by reading the manifests: what is in them, and what is not. Information is left out but for
 * the cut of the default grace, which every workload without a grace of its own has on GKE.
 */
const charts = [
  {
    file: "ingress-nginx-ha.yaml",
    found: [
      "grace-cut Deployment ingress-nginx-ha-controller",
      "no-spread Deployment ingress-nginx-ha-controller",
    ],
    // Readiness is there, the budget leaves one of two pods, the jobs are hooks of Helm.
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
];

describe("charts that nobody here wrote", () => {
  it.each(charts)("$file", async ({ file, found, cutByDefault }) => {
    const text = readFileSync(new URL(`../data/charts/${file}`, import.meta.url), "utf8");
    const { findings, notJudged } = await auditYaml(text, { platforms: ["gke"] });
    const worse = findings.filter(({ severity }) => severity !== "info");
    const info = findings.filter(({ severity }) => severity === "info");

    expect(
      worse.map(({ rule, object }) => `${rule} ${object.replace("default/", "")}`).sort(),
    ).toEqual(found);
    expect(info.map(({ rule }) => rule)).toEqual(
      Array.from({ length: cutByDefault }, () => "grace-cut"),
    );
    expect(notJudged).toEqual([]);
  });
});
