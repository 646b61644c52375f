import { describe, expect, it } from "vitest";
import { readKubeletConfiguration } from "../../src/audit/objects/audit-node.ts";
import { knownPlatforms, parsePlatform } from "../../src/audit/platform.ts";
import { platform } from "./support/audit-yaml.ts";

describe("a platform by name", () => {
  it.each([
    { name: "gke", regular: 15, critical: 15 },
    { name: "gke-25", regular: 25, critical: 5 },
    { name: "gke-120", regular: 105, critical: 15 },
    { name: "eks-al2023", regular: 120, critical: 30 },
    { name: "kubelet:30s/5s", regular: 25, critical: 5 },
    { name: "kubelet:2m30s/30s", regular: 120, critical: 30 },
  ])("$name gives regular pods $regular s and critical ones $critical s", (row) => {
    expect(platform(row.name).groups).toEqual([
      { priority: 0, seconds: row.regular },
      { priority: 2_000_000_000, seconds: row.critical },
    ]);
    expect(platform(row.name).name).toBe(row.name);
  });

  it.each(["eks", "aks", "kubelet:0s/0s"])("%s has no graceful shutdown", (name) => {
    expect(platform(name).groups).toEqual([]);
  });

  it("has the source Default if it is known, and File if it was typed", () => {
    for (const name of Object.keys(knownPlatforms)) expect(platform(name).source).toBe("Default");
    expect(platform("kubelet:30s/15s").source).toBe("File");
  });

  it.each([
    { text: "gce", says: 'Cannot judge against the platform "gce": it is unknown' },
    { text: "", says: "it is unknown" },
    { text: "kubelet:", says: "it is unknown" },
    { text: "toString", says: "it is unknown" },
    { text: "kubelet:15s/30s", says: "30 s for critical pods are more than the 15 s in total" },
    { text: "kubelet:-30s/5s", says: "it is not a pair of durations" },
    { text: "kubelet:30/15", says: "it is not a pair of durations" },
    { text: "kubelet:500ms/0s", says: "a period is 500 ms, expected 0 or at least 1 s" },
    { text: "kubelet:30s", says: "it is one duration, expected the pair TOTAL/CRITICAL" },
  ])("$text is refused: $says", ({ text, says }) => {
    expect(() => parsePlatform(text)).toThrow(says);
    expect(() => parsePlatform(text)).toThrow(expect.objectContaining({ exitCode: 2 }));
  });

  it.each(["conf/kubelet.yaml", "./1.yaml", "/etc/kubelet/2.yaml", "-"])(
    "takes any other text after kubelet: as a file: %s",
    (path) => {
      const name = `kubelet:${path}`;

      expect(parsePlatform(name)).toEqual({ kind: "KubeletFile", name, path });
    },
  );
});

describe("a KubeletConfiguration", () => {
  const pair = { shutdownGracePeriod: "30s", shutdownGracePeriodCriticalPods: "15s" };
  const groups = {
    shutdownGracePeriodByPodPriority: [{ priority: 0, shutdownGracePeriodSeconds: 60 }],
  };
  const head = { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration" };

  it.each([
    {
      why: "the pair",
      config: { shutdownGracePeriod: "1m", shutdownGracePeriodCriticalPods: "20s" },
      seconds: [40, 20],
    },
    { why: "only the total", config: { shutdownGracePeriod: "45s" }, seconds: [45, 0] },
    { why: "neither", config: {}, seconds: [] },
    {
      why: "the feature gate off",
      config: { ...pair, featureGates: { GracefulNodeShutdown: false } },
      seconds: [],
    },
    {
      why: "every beta feature off",
      config: { ...pair, featureGates: { AllBeta: false } },
      seconds: [],
    },
    {
      why: "every beta feature off except this one",
      config: { ...pair, featureGates: { AllBeta: false, GracefulNodeShutdown: true } },
      seconds: [15, 15],
    },
    {
      why: "the gate of priorities off, which the pair does not need",
      config: { ...pair, featureGates: { GracefulNodeShutdownBasedOnPodPriority: false } },
      seconds: [15, 15],
    },
    {
      why: "groups by priority and their gate off",
      config: { ...groups, featureGates: { GracefulNodeShutdownBasedOnPodPriority: false } },
      seconds: [],
    },
    {
      why: "groups by priority and the feature's own gate off",
      config: { ...groups, featureGates: { GracefulNodeShutdown: false } },
      seconds: [],
    },
  ])("with $why gives $seconds", ({ config, seconds }) => {
    const groups = readKubeletConfiguration({ ...head, ...config }, () => "kubelet.yaml");

    expect(groups.map((group) => group.seconds)).toEqual(seconds);
  });

  it("by priority is kept as it is, lowest priority first", () => {
    const shutdownGracePeriodByPodPriority = [
      { priority: 100_000, shutdownGracePeriodSeconds: 10 },
      { priority: 0, shutdownGracePeriodSeconds: 180 },
    ];
    const config = { ...head, shutdownGracePeriodByPodPriority };

    expect(readKubeletConfiguration(config, () => "kubelet.yaml")).toEqual([
      { priority: 0, seconds: 180 },
      { priority: 100_000, seconds: 10 },
    ]);
  });

  it("may also be the response of a kubelet's configz, which has no kind", () => {
    const configz = {
      kubeletconfig: { shutdownGracePeriod: "30s", shutdownGracePeriodCriticalPods: "15s" },
    };

    expect(readKubeletConfiguration(configz, () => "n1").map((group) => group.seconds)).toEqual([
      15, 15,
    ]);
  });

  it.each([
    {
      why: "another kind",
      json: { kind: "Deployment" },
      says: 'its kind is the text "Deployment"',
    },
    { why: "a list", json: [], says: "its kind is nothing" },
    {
      why: "critical over total",
      json: { ...head, shutdownGracePeriod: "5s", shutdownGracePeriodCriticalPods: "6s" },
      says: "more than the 5 s in total",
    },
    {
      why: "a number",
      json: { ...head, shutdownGracePeriod: 30 },
      says: "shutdownGracePeriod is 30",
    },
    { why: "text", json: { ...head, shutdownGracePeriod: "long" }, says: 'the text "long"' },
    {
      why: "both forms at once",
      json: {
        ...head,
        shutdownGracePeriod: "5s",
        shutdownGracePeriodByPodPriority: [{ priority: 0, shutdownGracePeriodSeconds: 5 }],
      },
      says: "expected one of them",
    },
    {
      why: "a negative group",
      json: {
        ...head,
        shutdownGracePeriodByPodPriority: [{ priority: 0, shutdownGracePeriodSeconds: -5 }],
      },
      says: "shutdownGracePeriodByPodPriority[0] is not understood",
    },
  ])("with $why is refused as the kubelet refuses it", ({ json, says }) => {
    expect(() => readKubeletConfiguration(json, () => "kubelet.yaml")).toThrow(says);
  });
});
