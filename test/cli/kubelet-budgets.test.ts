import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { directKubelet } from "../../src/cli/cluster/direct-kubelet.ts";
import { proxiedKubelet, readKubeletBudgets } from "../../src/cli/cluster/read-cluster.ts";
import { type KubeAccess, kubeletAccess } from "../../src/kube/access/kube-access.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { ScriptedApi, unreachable } from "../support/scripted-api.ts";
import { type Script, ScriptedServer } from "../support/scripted-server.ts";

const pem = (name: string) =>
  readFileSync(new URL(`../kube/fixtures/${name}.pem`, import.meta.url), "utf8");
const own = { key: pem("server.key"), cert: pem("server.cert") };

const node = (name: string, address?: string) => ({
  metadata: { name },
  status: { addresses: address === undefined ? [] : [{ type: "InternalIP", address }] },
});
const configz = {
  kubeletconfig: { shutdownGracePeriod: "30s", shutdownGracePeriodCriticalPods: "15s" },
};
const gkeGroups = [
  { priority: 0, seconds: 15 },
  { priority: 2_000_000_000, seconds: 15 },
];

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A kubelet on loopback, and a client that trusts `ca`. */
async function kubelet(script: Script, ca = own.cert) {
  const server = await new ScriptedServer(script, own).start();
  closing.push(() => server.stop());
  const access: KubeAccess = {
    server: "https://api.example:6443",
    namespace: undefined,
    reload: () => Promise.resolve(),
    credentials: async () => ({
      headers: { authorization: "Bearer secret" },
      tls: { ca, servername: "api.example" },
    }),
  };
  const ask = (certificate: "Verified" | "Unverified" = "Verified") =>
    directKubelet(access, {
      certificate,
      clock: new ManualClock(),
      port: Number(new URL(server.url).port),
    });
  return { server, ask };
}

const answering =
  (status: number, body: unknown): Script =>
  (_, response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  };

describe("a kubelet queried at its own port", () => {
  it("returns its budget at /configz for the caller's token", async () => {
    const { server, ask } = await kubelet(answering(200, configz));
    const { read, notes } = await readKubeletBudgets([node("n1", "127.0.0.1")], ask());

    expect(read).toEqual(new Map([["n1", gkeGroups]]));
    expect(notes).toEqual([]);
    expect(server.seen).toMatchObject([
      { method: "GET", url: "/configz", headers: { authorization: "Bearer secret" } },
    ]);
  });

  it("whose certificate the cluster's CA has not signed never receives the token", async () => {
    const { server, ask } = await kubelet(answering(200, configz), pem("other-name.cert"));
    const { read, notes } = await readKubeletBudgets([node("n1", "127.0.0.1")], ask());

    expect(read.size).toBe(0);
    expect(server.seen).toEqual([]);
    expect(notes[0]).toMatch(/not trusted.*node n1 is audited with the defaults of its platform/);
  });

  it("is trusted without verification if the user allows that", async () => {
    const { ask } = await kubelet(answering(200, configz), pem("other-name.cert"));
    const { read } = await readKubeletBudgets([node("n1", "127.0.0.1")], ask("Unverified"));

    expect(read).toEqual(new Map([["n1", gkeGroups]]));
  });

  it.each([
    ["without an address", node("n1"), "its Node has no InternalIP address"],
    ["at which nothing listens", node("n1", "127.0.0.2"), "connection refused"],
  ])("of a node %s is replaced by the platform's default, with a note", async (_, asked, words) => {
    const { ask } = await kubelet(answering(200, configz));
    const { read, notes } = await readKubeletBudgets([asked], ask());

    expect(read.size).toBe(0);
    expect(notes).toHaveLength(1);
    expect(notes[0]).toContain(words);
  });

  it.each([
    [403, "RIGHT_MISSING"],
    [401, "API_UNAUTHORIZED"],
  ])(
    "that responds with %i ends the audit, since the next one would do the same",
    async (status, code) => {
      const { ask } = await kubelet(
        answering(status, {
          message: "Forbidden (user=x, verb=get, resource=nodes, subresource(s)=[configz])",
        }),
      );

      await expect(readKubeletBudgets([node("n1", "127.0.0.1")], ask())).rejects.toMatchObject({
        code,
        message: expect.stringContaining("subresource(s)=[configz]"),
      });
    },
  );

  it.each([
    ["an error", answering(500, { message: "no" })],
    ["another kind of object", answering(200, { kind: "Status" })],
    ["an impossible budget", answering(200, { kubeletconfig: { shutdownGracePeriod: 30 } })],
  ])(
    "that responds with %s is replaced by the platform's default, with a note",
    async (_, script) => {
      const { ask } = await kubelet(script);
      const { read, notes } = await readKubeletBudgets([node("n1", "127.0.0.1")], ask());

      expect(read.size).toBe(0);
      expect(notes[0]).toContain("the kubelet of n1");
    },
  );
});

describe("the access to a kubelet", () => {
  const access: KubeAccess = {
    server: "https://api.example",
    namespace: "shop",
    reload: () => Promise.resolve(),
    credentials: async () => ({
      headers: { authorization: "Bearer t" },
      auth: "user:password",
      tls: {
        ca: "ca",
        cert: "cert",
        key: "key",
        servername: "api.example",
        rejectUnauthorized: false,
      },
    }),
  };

  it.each([
    ["10.0.0.7", "https://10.0.0.7:10250"],
    ["fd00::7", "https://[fd00::7]:10250"],
    ["node-7.internal", "https://node-7.internal:10250"],
  ])("at %s uses %s", (address, server) => {
    expect(kubeletAccess(access, { address, certificate: "Verified" }).server).toBe(server);
  });

  it("carries token and certificate, but not the API server's name and password", async () => {
    const { credentials } = kubeletAccess(access, { address: "10.0.0.7", certificate: "Verified" });

    expect(await credentials()).toEqual({
      headers: { authorization: "Bearer t" },
      tls: { ca: "ca", cert: "cert", key: "key", rejectUnauthorized: true },
    });
  });
});

describe("a kubelet queried through the API server", () => {
  it("is skipped on GKE Autopilot, which forbids the request", async () => {
    const api = new ScriptedApi(() => ({ status: 403, body: {} }));

    expect(await readKubeletBudgets([node("gk3-a-pool-1")], proxiedKubelet(api))).toEqual({
      read: new Map(),
      notes: [],
    });
    expect(api.sent).toEqual([]);
  });

  it("that is unreachable adds one note, and the others return their budgets", async () => {
    const api = new ScriptedApi(({ path }) =>
      path.includes("/n1/") ? unreachable() : { status: 200, body: configz },
    );
    const nodes = Array.from({ length: 40 }, (_, at) => node(`n${at}`));
    const { read, notes } = await readKubeletBudgets(nodes, proxiedKubelet(api));

    expect(read.size).toBe(39);
    expect(notes).toEqual([
      "Cannot read /configz of the kubelet of n1: no response through the API server, check the kubelet; node n1 is audited with the defaults of its platform",
    ]);
    expect(api.sent[0]?.path).toBe("/api/v1/nodes/n0/proxy/configz");
  });

  it("are named up to three if many are unreachable, and counted beyond", async () => {
    const nodes = Array.from({ length: 18 }, (_, at) => node(`n${at + 10}`));
    const { notes } = await readKubeletBudgets(
      nodes,
      proxiedKubelet(new ScriptedApi(() => unreachable())),
    );

    expect(notes.map((note) => /kubelet of (\w+)/.exec(note)?.[1] ?? note)).toEqual([
      ...["n10", "n11", "n12"],
      "15 more nodes are audited with the defaults of their platform",
    ]);
  });
});
