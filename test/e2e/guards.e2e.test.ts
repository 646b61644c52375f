/**
 * What stolen tokens are refused by the admission policies, on a real API server, whatever the
 * accounts and the namespace are called: kustomize, Helm and an editor rename them, and none of
 * them looks into an expression.
 */
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { KubeRequest, KubeSender } from "../../src/contracts/kube-api.ts";
import { departureName } from "../../src/core/departure/departure.ts";
import { placeholderImage, placeholderObject } from "../../src/kube/cluster-capacity.ts";
import { KubeNodeMarks } from "../../src/kube/node/node-marks.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import type { ApiAnswer } from "../support/api-request.ts";
import { GuardWorld, otherImage, privileged } from "./guard-world.ts";
import { byHand, byHelm, type Installed, install, overlay } from "./installed-guards.ts";
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

const ways: readonly (readonly [string, () => Promise<string>])[] = [
  ["a kustomization with another namespace", () => overlay(world, "namespace: platform")],
  ["a kustomization with a prefix", () => overlay(world, "namePrefix: acme-")],
  ["a kustomization with a suffix", () => overlay(world, "nameSuffix: -blue")],
  [
    "Helm with other names",
    async () =>
      byHelm(world, "spot-tools", [
        ...["fullnameOverride=spot", "serviceAccount.name=pilot"],
        ...["agent.serviceAccount.name=lookout", "agent.options.fallback=Drain"],
        "controller.restartOwner=true",
      ]),
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

const mark = "lastcall.dev/departure";
const before = "lastcall.dev/cordoned-before";

describe("the marks that an agent with a fallback writes to its node", () => {
  let installed: Installed;
  let token: string;
  let marks: KubeNodeMarks;
  const path = "/api/v1/nodes/n1";

  beforeAll(async () => {
    installed = await install(world.plane, await overlay(world, ""));
    token = await world.tokenOnNode(installed.agent);
    await world.untilInForce(installed, token);
    marks = new KubeNodeMarks({ api: sender(), clock: realClock });
  });
  afterAll(() => installed?.remove());
  afterEach(() => administer({ metadata: { annotations: null, labels: null }, spec: null }));

  /** The transport that the program's own marks are written through. */
  function sender(): KubeSender {
    return {
      send: ({ method, path: at, body, patchType }: KubeRequest) =>
        world.plane.request({
          ...{ method, path: at, token },
          ...(body !== undefined && { body }),
          ...(patchType && { contentType: patchType }),
        }),
    };
  }

  function change(body: object, sub = ""): Promise<ApiAnswer> {
    return patch(`${path}${sub}`, body, token);
  }

  function administer(body: object): Promise<ApiAnswer> {
    return patch(path, body, world.plane.adminToken);
  }

  async function isCordoned(): Promise<boolean> {
    return (await world.plane.request({ path })).body.spec.unschedulable === true;
  }

  const name = () => departureName(world.node("n1"));
  const itsMark = () => ({ departure: name(), cause: "SpotInterruption", message: "" }) as const;
  const annotated = (annotations: object, spec?: object) => ({
    metadata: { annotations },
    ...(spec && { spec }),
  });

  test("are all written and removed again by the agent", async () => {
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    expect(await isCordoned()).toBe(true);
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    const back = { ...world.node("n1"), departure: name() };
    expect(await marks.uncordon(back)).toEqual({ kind: "Done" });
    expect(await isCordoned()).toBe(false);
  });

  test("leave the cordon of a person in place when they are removed", async () => {
    await administer({ spec: cordon });
    expect(await marks.cordon(world.node("n1"), itsMark())).toEqual({ kind: "Done" });
    const { annotations } = (await world.plane.request({ path })).body.metadata;
    expect(annotations).toMatchObject({ [mark]: name(), [before]: "true" });
    const back = { ...world.node("n1"), departure: name() };
    expect(await marks.uncordon(back)).toEqual({ kind: "Done" });
    expect(await isCordoned()).toBe(true);
  });

  // Each list of writes would lift the cordon, if all of them were accepted.
  test.each<[string, () => readonly object[]]>([
    ["lifts it", () => [{ spec: { unschedulable: null } }]],
    [
      "marks the node first",
      () => [annotated({ [mark]: name() }), { spec: { unschedulable: null } }],
    ],
    [
      "marks the node first, and removes the mark with the cordon",
      () => [annotated({ [mark]: name() }), annotated({ [mark]: null }, { unschedulable: null })],
    ],
    [
      "removes the record of the person's cordon first",
      () => [
        annotated({ [mark]: name(), [before]: "true" }),
        annotated({ [before]: null }),
        annotated({ [mark]: null }, { unschedulable: null }),
      ],
    ],
    [
      "empties that record first",
      () => [
        annotated({ [mark]: name(), [before]: "" }),
        annotated({ [mark]: null, [before]: null }, { unschedulable: null }),
      ],
    ],
    [
      "removes that record together with the cordon",
      () => [
        annotated({ [mark]: name(), [before]: "true" }),
        annotated({ [mark]: null, [before]: null }, { unschedulable: null }),
      ],
    ],
  ])("do not lift a person's cordon: an agent %s", async (_, writes) => {
    await administer({ spec: cordon });
    const answers: ApiAnswer[] = [];
    for (const write of writes()) answers.push(await change(write));
    expect(await isCordoned()).toBe(true);
    expect(answers.map(({ status }) => status)).toContain(403);
  });

  test("cannot be kept for a later cordon of a person", async () => {
    await change(annotated({ [mark]: name() }, { unschedulable: true }));
    expect(await isCordoned()).toBe(true);
    const kept = await change({ spec: { unschedulable: null } });
    expect(kept.status).toBe(403);
    expect(kept.body.message).toContain("only in the write that removes its mark");
  });

  test.each<[string, () => object, string]>([
    ["a mark without a cordon", () => annotated({ [mark]: name() }), ""],
    ["a cordon without a mark", () => ({ spec: { unschedulable: true } }), ""],
    ["a mark by way of the status", () => annotated({ [mark]: name() }), "/status"],
    [
      "a mark for another node",
      () => annotated({ [mark]: departureName(world.node("n2")) }, { unschedulable: true }),
      "",
    ],
    [
      "a mark for an invented departure",
      () => annotated({ [mark]: "any" }, { unschedulable: true }),
      "",
    ],
    ["the record of another's cordon alone", () => annotated({ [before]: "true" }), ""],
    [
      "a taint without a mark",
      () => ({ spec: { taints: [{ key: "lastcall.dev/departing", effect: "NoSchedule" }] } }),
      "",
    ],
    ["the label without a mark", () => ({ metadata: { labels: { [excluded]: "lastcall" } } }), ""],
    [
      "two conditions",
      () => ({ status: { conditions: [departing(""), departing("")] } }),
      "/status",
    ],
    [
      "a condition of any length",
      () => ({ status: { conditions: [departing("x".repeat(1025))] } }),
      "/status",
    ],
  ])("are not %s", async (_, body, sub) => {
    const refused = await change(body(), sub);
    expect({ status: refused.status, message: refused.body.message }).toMatchObject({
      status: 403,
    });
    expect(refused.body.message).toContain("an agent");
  });

  test("do not replace or remove those of others", async () => {
    const theirs = { [excluded]: "drained-by-hand" };
    const body = { metadata: { annotations: { [mark]: "by-hand" }, labels: theirs }, spec: cordon };
    expect((await administer(body)).status).toBe(200);
    for (const refused of [
      await change(annotated({ [mark]: name() })),
      await change(annotated({ [mark]: null }, { unschedulable: null })),
      await change({ metadata: { labels: { [excluded]: null } } }),
      await change({ metadata: { labels: { [excluded]: "lastcall" } } }),
    ]) {
      expect(refused.status).toBe(403);
      expect(refused.body.message).toContain("an agent");
    }
  });

  test("do not keep a person from cordoning and uncordoning the marked node", async () => {
    await marks.cordon(world.node("n1"), itsMark());
    for (const act of ["uncordon", "cordon", "uncordon"]) await mustRun(world.plane, [act, "n1"]);
    expect(await isCordoned()).toBe(false);
  });

  test("carry no field manager, of which there could be any number", async () => {
    const refused = await change({ metadata: {} }, "?fieldManager=any");
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain("must not set a field manager");
  });
});

const cordon = { unschedulable: true };
const excluded = "node.kubernetes.io/exclude-from-external-load-balancers";

function departing(message: string): object {
  return { type: "Departing", status: "True", reason: "Test", message };
}

function patch(path: string, body: object, token: string): Promise<ApiAnswer> {
  const contentType = "application/merge-patch+json";
  return world.plane.request({ method: "PATCH", path, body, contentType, token });
}
