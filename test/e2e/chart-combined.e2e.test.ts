/**
 * Values that are fine one by one, combined at random. What the real Helm makes of them is either
 * refused with a sentence, or keeps rules that know nothing of the templates: they start from the
 * options that the program in the pod would have.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Deployment } from "kubernetes-types/apps/v1.js";
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import type { ClusterRoleBinding } from "kubernetes-types/rbac/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { OptionsFile } from "../../src/config/options/resolve-options.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import {
  brokenRules,
  type Choices,
  objectsIn,
  partOf,
  portOf,
  type Rules,
  renderedIn,
  samples,
  tryCombinations,
  type Values,
} from "../support/chart-combinations.ts";

const seed = Number(process.env.E2E_SEED ?? 1);
const namespace = "spot-tools";

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "lastcall-combined-"));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

function made(values: Values) {
  return renderedIn(home, { values, namespace });
}

/** Each value with what it may be; undefined: not given. */
const choices: Choices = {
  "controller.enabled": [undefined, undefined, true, false],
  "controller.replicas": [undefined, 0, 1, 3],
  replicaCount: [undefined, undefined, 1, 2],
  "controller.options.leader-elect": [undefined, undefined, true, false],
  "controller.options.namespace": [undefined, undefined, undefined, namespace, "other"],
  "controller.options.metrics-address": [undefined, undefined, ":9200", ":8080"],
  "controller.restartOwner": [undefined, true],
  extraEnv: [
    undefined,
    undefined,
    { LASTCALL_LEADER_ELECT: "false" },
    { LASTCALL_LOG_LEVEL: "debug" },
  ],
  "serviceAccount.create": [undefined, undefined, false],
  "serviceAccount.name": [undefined, undefined, "shared", "own", "lastcall-agent"],
  "agent.enabled": [undefined, undefined, true, false],
  "agent.options.fallback": [undefined, "None", "Cordon", "Drain"],
  "agent.options.health-address": [undefined, undefined, ":8088", ":9101"],
  "agent.options.notice-address": [undefined, undefined, ":9102", ":9101", ":8087"],
  "agent.extraEnv": [undefined, undefined, { LASTCALL_FALLBACK: "Drain" }],
  "agent.serviceAccount.create": [undefined, undefined, false],
  "agent.serviceAccount.name": [undefined, undefined, "shared", "lookout", "lastcall"],
  "rbac.enable": [undefined, undefined, false],
  fullnameOverride: [undefined, undefined, "spot"],
  nameOverride: [undefined, undefined, "spot"],
  "networkPolicy.enabled": [undefined, true],
  "metrics.podMonitor.enabled": [undefined, true],
};

const rules: Rules = {
  "one controller acts at a time": (objects, { controller }) => {
    if (controller === undefined || controller.options.leaderElect) return true;
    const { spec } = objects.find(({ kind }) => kind === "Deployment") as Deployment;
    return (spec?.replicas ?? 1) <= 1 && spec?.strategy?.type === "Recreate";
  },
  "each part has a ServiceAccount of its own": (_, { controller, agent }) => {
    const names = [controller, agent].flatMap((part) => part?.pod.serviceAccountName ?? []);
    return new Set(names).size === names.length && !names.includes("default");
  },
  "every object has a name of its own": (objects) => {
    const keys = objects.map(
      ({ kind, metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`,
    );
    return new Set(keys).size === keys.length;
  },
  "permissions go to the accounts of the pods that are installed": (objects, parts) => {
    const names = Object.values(parts).map((part) => part?.pod.serviceAccountName);
    const bindings = objects.filter(({ kind }) => /^(Cluster)?RoleBinding$/.test(kind));
    return (bindings as ClusterRoleBinding[]).every(({ subjects = [] }) =>
      subjects.every((one) => names.includes(one.name) && one.namespace === namespace),
    );
  },
  "an agent may do what its fallback does, and no more": (objects, { agent }) => {
    const fallback = agent?.options.fallback ?? "None";
    const of = (kind: string, name: RegExp) =>
      objects.some((one) => one.kind === kind && name.test(one.metadata.name));
    const isGuarded = {
      Cordon: of("ValidatingAdmissionPolicyBinding", /-agent-node$/),
      Drain: of("ValidatingAdmissionPolicyBinding", /-agent-eviction$/),
    };
    const hasRoles = objects.some(({ kind }) => kind === "ClusterRole");
    const may = {
      Cordon: hasRoles ? of("ClusterRole", /fallback-cordon$/) : isGuarded.Cordon,
      Drain: hasRoles ? of("ClusterRole", /fallback-drain$/) : isGuarded.Drain,
    };
    return (
      may.Cordon === (fallback !== "None") &&
      may.Drain === (fallback === "Drain") &&
      isGuarded.Cordon === may.Cordon &&
      isGuarded.Drain === may.Drain
    );
  },
  "each pod listens on different ports, and is probed on its own": (_, parts) =>
    Object.values(parts).every((part) => {
      if (part === undefined) return true;
      const { healthAddress, metricsAddress, noticeAddress } = part.options;
      const ports = [healthAddress, metricsAddress, noticeAddress].flatMap((one) =>
        one === undefined ? [] : portOf(one),
      );
      const [container] = part.pod.containers;
      const named = new Map(container?.ports?.map((one) => [one.name, one.containerPort]));
      const probed = container?.livenessProbe?.httpGet?.port ?? "";
      return (
        new Set(ports).size === ports.length &&
        named.get("metrics") === portOf(metricsAddress) &&
        (named.get(String(probed)) ?? probed) === portOf(healthAddress)
      );
    }),
  "the Lease is in the namespace of its permissions": (_, parts) =>
    Object.values(parts).every((part) =>
      [undefined, namespace].includes(part?.options.namespace as string | undefined),
    ),
  "no budget holds back a drain for good": (objects) =>
    objects
      .filter(({ kind }) => kind === "PodDisruptionBudget")
      .every((one) => {
        const { spec } = one as PodDisruptionBudget;
        return Number(spec?.maxUnavailable) >= 1 && spec?.minAvailable === undefined;
      }),
};

describe(`values combined at random, E2E_SEED=${seed}`, () => {
  test("are refused with a sentence, or make an installation that keeps every rule", () => {
    const draw = seededRng(seed);
    const { rendered, refused } = tryCombinations({ choices, rules, made, draw });
    // Otherwise the rules were hardly tried.
    expect(rendered).toBeGreaterThan(samples / 12);
    expect(refused.size).toBeGreaterThan(4);
  });
});

describe("two values that combine badly", () => {
  test.each<[string, Record<string, unknown>, string]>([
    [
      "one name for both accounts",
      { "serviceAccount.name": "one", "agent.serviceAccount.name": "one" },
      'serviceAccount.name and agent.serviceAccount.name: found "one" for both, expected two ServiceAccounts',
    ],
    [
      "the name that the agents' account has anyway",
      { "serviceAccount.name": "lastcall-agent" },
      'found "lastcall-agent" for both',
    ],
    [
      "no account for either part",
      { "serviceAccount.create": false, "agent.serviceAccount.create": false },
      'found "default" for both',
    ],
    [
      "no account for the controller",
      { "serviceAccount.create": false },
      "serviceAccount.name: found the namespace's default ServiceAccount",
    ],
    [
      "no account for the agents",
      { "agent.serviceAccount.create": false },
      "agent.serviceAccount.name: found the namespace's default ServiceAccount",
    ],
    [
      "no election and two replicas",
      { "controller.options.leader-elect": false },
      "found false with 2 replicas, expected one replica",
    ],
    [
      "no election by a variable",
      { extraEnv: [{ name: "LASTCALL_LEADER_ELECT", value: "false" }] },
      "extraEnv.LASTCALL_LEADER_ELECT: other objects of the chart depend on this option, expected it in controller.options.leader-elect",
    ],
    [
      "a fallback by a variable",
      { "agent.extraEnv": { LASTCALL_FALLBACK: "Drain" } },
      "agent.extraEnv.LASTCALL_FALLBACK: other objects of the chart depend on this option, expected it in agent.options.fallback",
    ],
    [
      "a Lease in another namespace than its permissions",
      { "controller.options.namespace": "other" },
      'controller.options.namespace: found "other", expected the release\'s namespace "spot-tools"',
    ],
    [
      "one port for notices and metrics",
      { "agent.options.notice-address": ":9101" },
      "agent.options.notice-address: found the port 9101, which metrics-address or health-address has",
    ],
  ])("are refused: %s", (_, values, said) => {
    const { stderr, code } = made(values);
    expect(code).toBe(1);
    expect(stderr).toContain(said);
  });

  // The chart does not see a file. What it assumes are flags, which take precedence.
  const inFile: Readonly<Record<string, string>> = {
    ...{ "leader-elect": "false", namespace: "other", fallback: "Drain" },
    ...{ "health-address": ":1", "metrics-address": ":2" },
  };
  const file: OptionsFile = {
    textsOf: (_, name) =>
      inFile[name] === undefined ? undefined : { place: name, texts: [inFile[name]] },
  };

  const volume = { name: "files" };
  const mount = { name: "files", mountPath: "/f" };
  const mounted = {
    ...{ extraVolumes: [volume], extraVolumeMounts: [mount] },
    ...{ "agent.extraVolumes": [volume], "agent.extraVolumeMounts": [mount] },
  };

  test.each<[string, Record<string, unknown>]>([
    ["an option", { "controller.options.config": "/f", "agent.options.config": "/f" }],
    ["variables", { extraEnv: [{ name: "LASTCALL_CONFIG", value: "/f" }] }],
    ["a map of variables", { extraEnv: { LASTCALL_CONFIG: "/f" } }],
  ])("are none of a value and a file of options that is named by %s", (_, values) => {
    const ofAgent = { "agent.extraEnv": { LASTCALL_CONFIG: "/f" } };
    const { stdout, stderr } = made({ ...mounted, ...values, ...ofAgent });
    expect(stderr).toBe("");
    const objects = objectsIn(stdout);
    expect(partOf(objects, "Deployment", file)?.options).toMatchObject({
      ...{ leaderElect: true, namespace, healthAddress: ":8080", metricsAddress: ":9101" },
    });
    expect(partOf(objects, "DaemonSet", file)?.options).toMatchObject({
      ...{ fallback: "None", healthAddress: "127.0.0.1:8087", metricsAddress: "[10.0.0.1]:9101" },
    });
  });

  test("are none of no election in the values and a file of options", () => {
    const values = { "controller.options.leader-elect": false, "controller.replicas": 1 };
    const { stdout } = made({ ...mounted, ...values, "controller.options.config": "/f" });
    const objects = objectsIn(stdout);
    expect(partOf(objects, "Deployment", file)?.options).toMatchObject({ leaderElect: false });
    expect(brokenRules(rules, objects)).toEqual([]);
  });

  test("are allowed if only one of the parts is installed", () => {
    const names = { "serviceAccount.name": "one", "agent.serviceAccount.name": "one" };
    for (const part of ["controller", "agent"]) {
      expect(made({ ...names, [`${part}.enabled`]: false })).toMatchObject({ code: 0, stderr: "" });
    }
  });

  test("one replica without election is replaced before the next one starts", () => {
    const { stdout } = made({ "controller.options.leader-elect": false, replicaCount: 1 });
    const deployment = objectsIn(stdout).find(({ kind }) => kind === "Deployment") as Deployment;
    expect(deployment.spec).toMatchObject({ replicas: 1, strategy: { type: "Recreate" } });
  });
});
