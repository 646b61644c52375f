import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AuditLog, createAuditLog } from "../support/audit-log.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { freePort } from "../support/free-port.ts";
import { runLastcall } from "../support/lastcall-process.ts";
import { waitUntil } from "../support/wait-until.ts";
import { controllerUser } from "./fleet-world.ts";
import { mustRun } from "./must-run.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
let folder: string;
let audit: AuditLog;
let plane: ControlPlane;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-bad-"));
  audit = createAuditLog();
  plane = await startControlPlane({
    ...{ withControllerManager: false, withScheduler: false, withKwok: false },
    apiServerFlags: audit.flags,
  });
  await mustRun(plane, ["apply", "-f", join(deploy, "base/namespace.yaml")]);
  await mustRun(plane, ["apply", "-f", join(deploy, "base/rbac.yaml")]);
  await mustRun(plane, ["create", "serviceaccount", "nobody", "-n", "lastcall"]);
});

afterAll(async () => {
  await plane?.stop();
  audit?.remove();
  rmSync(folder, { recursive: true, force: true });
});

test("an API server that rejects the credentials is reported as such", async () => {
  const kubeconfig = plane.kubeconfigFor("unknown", "no-such-token");
  const { code, sentence } = await lastcall(["plan", "--kubeconfig", kubeconfig]);
  expect(code).toBe(1);
  expect(sentence).toContain("the API server rejected the credentials");
});

describe("without the custom resource definitions", () => {
  test.each([["run"], ["plan"]])("%s names the missing definition", async (command) => {
    const kubeconfig = await kubeconfigOf("lastcall");
    const { code, sentence } = await lastcall([
      ...[command, "--kubeconfig", kubeconfig],
      ...(command === "run" ? await addresses() : []),
    ]);
    expect(code).toBe(1);
    expect(sentence).toMatch(
      /expected the custom resource definition departure(policie)?s\.lastcall\.dev$/,
    );
  });
});

describe("with the definitions installed", () => {
  beforeAll(async () => {
    await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
    await waitUntil(async () => (await plane.kubectl(["get", "dpol,dep"])).code === 0, {
      what: "both resources are served",
      timeoutMs: 60_000,
      signal: plane.signal,
    });
  });

  test.each([["run"], ["plan"]])("%s names the missing permission", async (command) => {
    const kubeconfig = await kubeconfigOf("nobody");
    const { code, sentence } = await lastcall([
      ...[command, "--kubeconfig", kubeconfig],
      ...(command === "run" ? await addresses() : []),
    ]);
    expect(code).toBe(1);
    expect(sentence).toMatch(/: forbidden \(.*\), grant list on [a-z.]+$/);
    expect(sentence).toContain("system:serviceaccount:lastcall:nobody");
  });

  test("run names the permission for the lease if only that is missing", async () => {
    const kubeconfig = await kubeconfigOf("lastcall");
    await mustRun(plane, ["delete", "rolebinding", "lastcall", "-n", "lastcall"]);
    const { code, sentence } = await run(["--kubeconfig", kubeconfig]);
    await mustRun(plane, ["apply", "-f", join(deploy, "base/rbac.yaml")]);
    expect(code).toBe(1);
    expect(sentence).toContain("on leases.coordination.k8s.io in namespace lastcall");
  });

  test("run says how to create its namespace if that is missing", async () => {
    const { code, sentence } = await run(["--kubeconfig", plane.kubeconfig, "--namespace", "none"]);
    expect(code).toBe(1);
    expect(sentence).toContain(
      "the namespace does not exist, create it with: kubectl create namespace none",
    );
  });

  test("run refuses to lead beside the leader of another namespace", async () => {
    const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    const renewTime = new Date().toISOString().replace("Z", "000Z");
    const spec = { holderIdentity: "host-7", leaseDurationSeconds: 600, renewTime };
    const lease = { metadata: { name: "lastcall" }, spec };
    await plane.request({ method: "POST", path: leases, body: lease });
    const { code, sentence } = await run(["--kubeconfig", plane.kubeconfig, "-n", "lastcall"]);
    await plane.request({ method: "DELETE", path: `${leases}/lastcall` });
    expect(code).toBe(1);
    expect(sentence).toContain(
      "Cannot lead in the namespace lastcall: host-7 leads in default and renewed its Lease",
    );
    expect(sentence).toContain("run with -n default to stand by");
  });

  test("run exits if another program uses its port", async () => {
    const other = await listen();
    const taken = `127.0.0.1:${portOf(other)}`;
    const { code, sentence } = await lastcall([
      ...["run", "--kubeconfig", await kubeconfigOf("lastcall")],
      ...["--health-address", taken, "--metrics-address", `127.0.0.1:${await freePort()}`],
    ]);
    other.close();
    expect(code).toBe(1);
    expect(sentence).toBe(
      `lastcall: Cannot listen on ${taken}: another program uses it, expected a free address`,
    );
  });
});

test("none of these commands wrote anything to the cluster", () => {
  const ours = [controllerUser, "system:serviceaccount:lastcall:nobody"];
  const written = audit.read().filter(({ user, code }) => ours.includes(user) && code < 300);
  expect(written).toEqual([]);
});

async function run(args: readonly string[]) {
  return lastcall(["run", ...args, ...(await addresses())]);
}

async function addresses(): Promise<readonly string[]> {
  const address = async () => `127.0.0.1:${await freePort()}`;
  return ["--health-address", await address(), "--metrics-address", await address()];
}

/**
 * Expects an error to be one line on stderr; JSON log lines of `run` may come before it.
 */
async function lastcall(args: readonly string[]) {
  const { code, stdout, stderr } = await runLastcall(args, { folder });
  const lines = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("{"));
  expect(lines).toHaveLength(code === 0 ? 0 : 1);
  return { code, stdout, sentence: lines[0] ?? "" };
}

async function kubeconfigOf(serviceAccount: string): Promise<string> {
  const token = await plane.tokenFor("lastcall", serviceAccount);
  return plane.kubeconfigFor(serviceAccount, token);
}

/** Accepts connections and never responds. */
async function listen(): Promise<Server> {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
