/**
 * What stolen tokens are refused by the admission policies, on a real API server, whatever the
 * accounts and the namespace are called: kustomize, Helm and an editor rename them, and none of
 * them looks into an expression.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { placeholderImage, placeholderObject } from "../../src/kube/cluster-capacity.ts";
import { GuardWorld, otherImage, privileged } from "./guard-world.ts";
import {
  byHand,
  byHelm,
  foldersFrom,
  type Installed,
  install,
  kustomize,
  overlay,
} from "./installed-guards.ts";
import { mustRun } from "./must-run.ts";

const deploy = join(import.meta.dirname, "../../deploy");

let world: GuardWorld;

beforeAll(async () => {
  world = await GuardWorld.start();
});
afterAll(() => world?.stop());

function placeholder(namespace: string): object {
  const placement = { nodeSelector: {}, podAffinity: [], podAntiAffinity: [] };
  return placeholderObject(
    {
      ...{ name: "placeholder-1", departure: { name: "n1-01234567", uid: "u" }, tolerations: [] },
      forPod: { namespace: "default", name: "web", uid: "u" },
      placement: { ...placement, requests: { cpu: 100 } },
    },
    { namespace, image: placeholderImage },
  );
}

interface PodSpec {
  securityContext: object;
  containers: [{ securityContext: object; [field: string]: unknown }];
}

/** A placeholder that would use its node by way of the kubelet, or would be less confined. */
const misused: readonly (readonly [string, (spec: PodSpec) => void])[] = [
  [
    "a probe",
    ({ containers: [one] }) => {
      one.readinessProbe = { httpGet: { host: "127.0.0.1", port: 10255 } };
    },
  ],
  [
    "a hook",
    ({ containers: [one] }) => {
      one.lifecycle = { postStart: { httpGet: { host: "169.254.169.254", port: 80 } } };
    },
  ],
  [
    "no seccomp profile",
    ({ containers: [one] }) => {
      Object.assign(one.securityContext, { seccompProfile: { type: "Unconfined" } });
    },
  ],
  [
    "no AppArmor profile",
    ({ containers: [one] }) => {
      Object.assign(one.securityContext, { appArmorProfile: { type: "Unconfined" } });
    },
  ],
  [
    "another SELinux type",
    (spec) => Object.assign(spec.securityContext, { seLinuxOptions: { type: "spc_t" } }),
  ],
  [
    "sysctls",
    (spec) => {
      const sysctls = [{ name: "kernel.msgmax", value: "1" }];
      Object.assign(spec.securityContext, { sysctls });
    },
  ],
];

function misusedPlaceholder(namespace: string, change: (spec: PodSpec) => void): object {
  const pod = placeholder(namespace) as { readonly spec: PodSpec };
  change(pod.spec);
  return pod;
}

const restarted = {
  metadata: {
    annotations: { "lastcall.dev/restarted-for": "0b1f7a3e-7f0e-4c53-9c1a-5d1f6f2f8a11" },
  },
};

/** Renames once more, below other names, and adds labels to every selector. */
const blue = {
  ...{ namePrefix: "acme-", nameSuffix: "-blue" },
  labels: [{ pairs: { team: "platform" }, includeSelectors: true }],
};

/** The accounts and the policies get their names from another object. */
const replacements = [
  ["ServiceAccount", "lastcall", "Deployment", "spec.template.spec.serviceAccountName"],
  ["ServiceAccount", "lastcall-agent", "DaemonSet", "spec.template.spec.serviceAccountName"],
].map(([kind, name, target, path]) => ({
  source: { kind, name, fieldPath: "metadata.name" },
  targets: [{ select: { kind: target }, fieldPaths: [path] }],
}));

const ways: readonly (readonly [string, () => Promise<string>])[] = [
  ["a kustomization with another namespace", () => overlay(world, "namespace: platform")],
  ["a kustomization with a prefix", () => overlay(world, "namePrefix: acme-")],
  ["a kustomization with a suffix", () => overlay(world, "nameSuffix: -blue")],
  [
    "an overlay of an overlay, with labels in every selector",
    () =>
      kustomize(world, {
        inner: { namespace: "inner", nameSuffix: "-x", resources: foldersFrom(world, "inner") },
        outer: { namespace: "outer", ...blue, resources: ["../inner"] },
      }),
  ],
  [
    "a component with a prefix, common labels and replacements",
    () =>
      kustomize(world, {
        component: {
          ...{ apiVersion: "kustomize.config.k8s.io/v1alpha1", kind: "Component" },
          ...{ namePrefix: "team-", commonLabels: { team: "platform" } },
        },
        whole: {
          ...{ namespace: "component", replacements, components: ["../component"] },
          resources: foldersFrom(world, "whole"),
        },
      }),
  ],
  [
    "a kustomization of each part alone, with another prefix",
    async () => {
      const [base, agent, ...more] = foldersFrom(world, "parts");
      const part = (namePrefix: string, resources: readonly unknown[]) =>
        kustomize(world, { parts: { namePrefix, namespace: "parts", resources } });
      return `${await part("one-", [base, ...more])}\n---\n${await part("two-", [agent])}`;
    },
  ],
  [
    "Helm with other names",
    async () =>
      byHelm(world, {
        namespace: "spot-tools",
        values: [
          ...["fullnameOverride=spot", "serviceAccount.name=pilot"],
          ...["agent.serviceAccount.name=lookout", "agent.options.fallback=Drain"],
          "controller.restartOwner=true",
        ],
      }),
  ],
  [
    "Helm in two releases, with accounts that others created",
    async () => {
      const release = (name: string, values: readonly string[]) =>
        byHelm(world, { release: name, namespace: "halves", values });
      const controller = release("left", [
        ...["agent.enabled=false", "nameOverride=left", "controller.restartOwner=true"],
        ...["serviceAccount.create=false", "serviceAccount.name=given"],
      ]);
      const agent = release("right", [
        ...["controller.enabled=false", "fullnameOverride=right", "agent.options.fallback=Drain"],
        ...["agent.serviceAccount.create=false", "agent.serviceAccount.name=given-agent"],
      ]);
      return `${controller}\n${agent}`;
    },
  ],
  [
    "Helm and a kustomization over its output",
    async () => {
      const text = byHelm(world, {
        namespace: "rendered",
        values: ["agent.options.fallback=Drain", "controller.restartOwner=true"],
      });
      mkdirSync(join(world.home, "rendered"), { recursive: true });
      writeFileSync(join(world.home, "rendered/all.yaml"), text);
      // Without it, kustomize before 5.5 leaves each binding with the name of no policy.
      const references = relative(join(world.home, "rendered"), join(deploy, "references"));
      return kustomize(world, { rendered: { ...blue, resources: [references, "all.yaml"] } });
    },
  ],
  ["another namespace by hand", () => byHand(world, "byhand")],
];

describe.each(ways)("installed by %s", (_, made) => {
  let installed: Installed;
  let token: string;

  beforeAll(async () => {
    installed = await install(world.plane, await made());
    // A prefix also renames the class, whose name the program knows: docs/running.md.
    await mustRun(world.plane, ["apply", "-f", `${deploy}/base/placeholder-priority.yaml`]);
    token = await world.tokenOnNode(installed.agent);
    await world.untilInForce(installed, token);
  });
  afterAll(() => installed?.remove());

  test("a stolen agent token concerns its own node only", async () => {
    const stolen = world.requestsWith(token);
    for (const what of ["depart", "mark", "remove", "evict"] as const) {
      const foreign = await stolen[what]("n2");
      expect({ what, status: foreign.status }).toEqual({ what, status: 403 });
      expect(foreign.body.message).toContain('its token is bound to node "n1"');
      const own = await stolen[what]("n1");
      expect({ what, ok: own.status < 300, why: own.body.message }).toMatchObject({ ok: true });
    }
  });

  test("an agent's token that is bound to no node can write nothing", async () => {
    const unbound = world.requestsWith(await world.tokenOf(installed.agent));
    for (const what of ["depart", "mark", "remove", "evict"] as const) {
      expect({ what, status: (await unbound[what]("n1")).status }).toEqual({ what, status: 403 });
    }
  });

  test("a stolen token of the controller creates placeholders and restarts, no more", async () => {
    const { namespace } = installed.controller;
    const stolen = world.requestsWith(await world.tokenOf(installed.controller));
    expect((await stolen.run(namespace, privileged)).body.message).toContain("only placeholder");
    expect((await stolen.run(namespace, placeholder(namespace))).body.message).toBeUndefined();
    for (const [what, change] of misused) {
      const { body } = await stolen.run(namespace, misusedPlaceholder(namespace, change));
      expect({ what, why: body.message }).toMatchObject({
        why: expect.stringContaining("a placeholder must"),
      });
    }
    expect((await stolen.change(otherImage)).body.message).toContain("may change only");
    expect((await stolen.change(restarted)).status).toBe(200);
  });

  test("the guards of the agents do not concern the controller", async () => {
    const controller = world.requestsWith(await world.tokenOf(installed.controller));
    for (const what of ["depart", "label", "mark", "remove", "evict"] as const) {
      const { status, body } = await controller[what]("n2");
      expect({ what, ok: status < 300, why: body.message }).toMatchObject({ ok: true });
    }
  });

  test.each([
    ["a person", async () => undefined],
    ["a program with an administrator's rights", () => world.administratorsToken()],
  ])("no guard concerns %s", async (__, getToken) => {
    const free = world.requestsWith(await getToken());
    const answers = {
      depart: await free.depart("n2"),
      label: await free.label("n2"),
      mark: await free.mark("n2"),
      remove: await free.remove("n2"),
      evict: await free.evict("n2"),
      run: await free.run("default", privileged),
      change: await free.change(otherImage),
    };
    for (const [what, { status, body }] of Object.entries(answers)) {
      expect({ what, ok: status < 300, why: body.message }).toMatchObject({ ok: true });
    }
  });
});
