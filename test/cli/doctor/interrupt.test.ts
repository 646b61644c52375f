import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fact } from "../../../src/cli/doctor/cluster-facts.ts";
import { LastcallError } from "../../../src/errors.ts";
import { realClock } from "../../../src/runtime/real-clock.ts";
import { startLastcall } from "../../support/lastcall-process.ts";

/** Doctor gives each request 20 s; if it exits within a quarter of that, it did not wait. */
const atOnceMs = 5000;

const silent = createTcpServer((socket) => socket.on("error", () => undefined));
const servers: Server[] = [];
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lastcall-interrupt-"));
  await portOf(silent);
});

afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  await rm(folder, { recursive: true });
});

async function portOf(server: Server): Promise<number> {
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** A local API server with one Spot node and one policy; it returns 404 for everything else. */
async function apiServer(providerID: string, isSilent: (path: string) => boolean) {
  const node = {
    metadata: { name: "n1", labels: { "eks.amazonaws.com/capacityType": "SPOT" } },
    spec: { providerID },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  };
  const gate = { alerts: { url: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` } };
  const policy = {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy" },
    metadata: { name: "spot" },
    spec: { gates: gate },
  };
  const controller = {
    metadata: {
      ...{ name: "lastcall", namespace: "lastcall" },
      labels: { "app.kubernetes.io/name": "lastcall", "app.kubernetes.io/component": "controller" },
    },
    spec: { template: { spec: { containers: [{ args: ["run", "--action-hosts=127.0.0.1"] }] } } },
  };
  const answers: Readonly<Record<string, object>> = {
    "/version": { major: "1", minor: "36", gitVersion: "v1.36.0" },
    "/api/v1/nodes": { kind: "NodeList", items: [node] },
    "/apis/apps/v1/deployments": { kind: "DeploymentList", items: [controller] },
    "/apis/apps/v1/daemonsets": { kind: "DaemonSetList", items: [] },
    "/apis/lastcall.dev/v1alpha1/departurepolicies": { kind: "List", items: [policy] },
  };
  const asked = Promise.withResolvers<void>();
  const server = createServer(({ url = "" }, response) => {
    const path = url.replace(/\?.*/, "");
    if (isSilent(path)) return asked.resolve();
    const body = answers[path];
    response.writeHead(body === undefined ? 404 : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(body ?? { kind: "Status", code: 404, message: "not here" }));
  });
  const url = `http://127.0.0.1:${await portOf(server)}`;
  servers.push({ close: () => server.closeAllConnections() } as unknown as Server);
  const file = join(folder, "kubeconfig");
  await writeFile(
    file,
    JSON.stringify({
      clusters: [{ name: "c", cluster: { server: url } }],
      users: [{ name: "u", user: { token: "t" } }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    }),
  );
  return { file, asked: asked.promise };
}

const none = () => false;

it.each<readonly [what: string, providerID: string, isSilent: (path: string) => boolean]>([
  ["the API server", "", (path) => path === "/version"],
  ["a list request", "", (path) => path === "/api/v1/nodes"],
  ["everything except nodes", "", (path) => path !== "/version" && path !== "/api/v1/nodes"],
  ["Alertmanager", "", none],
  ["EC2", "aws:///eu-west-1a/i-0123456789abcdef0", none],
  ["Compute Engine", "gce://demo/a/n1", none],
  [
    "Azure",
    "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v",
    none,
  ],
])(
  "doctor exits with 130 at the first interrupt while %s does not respond",
  async (what, id, isSilent) => {
    const { port } = silent.address() as AddressInfo;
    const connected = once(silent, "connection");
    const { file, asked } = await apiServer(id, isSilent);
    await writeFile(join(folder, "token"), "token");
    const process = startLastcall(["doctor", "--kubeconfig", file], {
      folder,
      env: {
        AWS_ACCESS_KEY_ID: "test",
        AWS_SECRET_ACCESS_KEY: "test",
        AWS_ENDPOINT_URL: `http://127.0.0.1:${port}`,
        GCE_METADATA_HOST: `127.0.0.1:${port}`,
        AZURE_CLIENT_ID: "c",
        AZURE_TENANT_ID: "t",
        AZURE_FEDERATED_TOKEN_FILE: join(folder, "token"),
        AZURE_AUTHORITY_HOST: `https://127.0.0.1:${port}/`,
      },
    });
    await Promise.race([isSilent === none ? connected : asked, process.ended]);
    const interruptedAt = realClock.monotonic();
    globalThis.process.kill(process.pid, "SIGINT");
    const { code, stdout, stderr } = await process.ended;
    expect({ what, code, stdout, stderr }).toEqual({
      ...{ what, code: 130, stdout: "" },
      stderr: expect.stringMatching(/^lastcall: [^\n]*Interrupted by SIGINT[^\n]*\n$/),
    });
    expect(realClock.monotonic() - interruptedAt).toBeLessThan(atOnceMs);
  },
);

it("doctor does not wait for a request that ignores its signal", async () => {
  const interrupt = new AbortController();
  const asking = fact({ clock: realClock, signal: interrupt.signal }, () => new Promise(() => {}));
  interrupt.abort(new LastcallError("INTERRUPTED", "Interrupted by SIGINT"));
  await expect(asking).rejects.toThrow("Interrupted by SIGINT");
});
