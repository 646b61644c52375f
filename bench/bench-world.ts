import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type ControlPlane, startControlPlane } from "../test/support/control-plane.ts";
import { createNodes } from "../test/support/kwok-fleet.ts";
import { waitUntil } from "../test/support/wait-until.ts";
import { type AuditTrail, createAuditTrail } from "./audit-trail.ts";
import { nodeAnnotations, nodeImages, podObject } from "./fleet-object.ts";
import { RawClient } from "./raw-client.ts";

const deploy = fileURLToPath(new URL("../deploy", import.meta.url));

export const controllerUser = "system:serviceaccount:lastcall:lastcall";
/** Sends the requests of the raw limit and creates the Departures. */
export const benchUser = "system:serviceaccount:lastcall:bench";

export interface BenchWorld {
  readonly plane: ControlPlane;
  readonly audit: AuditTrail;
  readonly folder: string;
  readonly controllerToken: string;
  readonly benchToken: string;
  stop(): Promise<void>;
}

/**
 * The real control plane with the permissions that `deploy/` grants, and an audit log of both
 * users.
 */
export async function startBenchWorld(): Promise<BenchWorld> {
  const folder = mkdtempSync(join(tmpdir(), "lastcall-bench-"));
  const audit = createAuditTrail([controllerUser, benchUser]);
  const plane = await startControlPlane({ apiServerFlags: audit.flags, withScheduler: false });
  const stop = async (): Promise<void> => {
    await plane.stop();
    audit.remove();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
    await mustRun(plane, ["apply", "-f", join(deploy, "base/namespace.yaml")]);
    await mustRun(plane, ["apply", "-f", join(deploy, "base/rbac.yaml")]);
    await mustRun(plane, ["create", "serviceaccount", "bench", "-n", "lastcall"]);
    const admin = ["create", "clusterrolebinding", "bench", "--clusterrole=cluster-admin"];
    await mustRun(plane, [...admin, "--serviceaccount=lastcall:bench"]);
    await waitUntil(
      async () => {
        const path = "/apis/lastcall.dev/v1alpha1/departures";
        return (await plane.request({ path })).status === 200;
      },
      { what: "departures can be listed", timeoutMs: 60_000 },
    );
    const controllerToken = await plane.tokenFor("lastcall", "lastcall");
    const benchToken = await plane.tokenFor("lastcall", "bench");
    return { plane, audit, folder, controllerToken, benchToken, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function mustRun(plane: ControlPlane, args: readonly string[]): Promise<void> {
  const { code, stderr } = await plane.kubectl(args);
  if (code !== 0) throw new Error(`Cannot run kubectl ${args.join(" ")}: ${stderr}`);
}

export interface FleetSize {
  readonly prefix: string;
  readonly nodes: number;
  readonly podsPerNode: number;
  /** By the node's place; Compute Engine's form by default. */
  readonly providerIdOf?: (place: number) => string;
}

/** The names of what `fillFleet` has created: a node, and its pods in the namespace `default`. */
export interface BenchNode {
  readonly name: string;
  readonly zone: string;
  readonly pods: readonly string[];
}

const nodesAtOnce = 100;

/** Creates nodes of realistic size, run by kwok, and pods bound to them without the scheduler. */
export async function fillFleet(world: BenchWorld, size: FleetSize): Promise<readonly BenchNode[]> {
  const fleet = Array.from({ length: size.nodes }, (_, at): BenchNode => {
    const name = `${size.prefix}-${String(at).padStart(4, "0")}`;
    return {
      name,
      zone: `europe-west1-${"bcd"[at % 3]}`,
      pods: Array.from({ length: size.podsPerNode }, (_, pod) => `${name}-${pod}`),
    };
  });
  const client = new RawClient(world.plane, { token: world.plane.adminToken, connections: 32 });
  for (let from = 0; from < fleet.length; from += nodesAtOnce) {
    const some = fleet.slice(from, from + nodesAtOnce);
    const wanted = some.map(({ name, zone }, at) => ({
      name,
      zone,
      annotations: nodeAnnotations(name),
      ...(size.providerIdOf && { providerID: size.providerIdOf(from + at) }),
    }));
    await createNodes(world.plane, wanted);
    await client.sendAll(
      some.map(({ name }) => ({
        method: "PATCH",
        path: `/api/v1/nodes/${name}/status`,
        contentType: "application/merge-patch+json",
        body: { status: { images: nodeImages() } },
      })),
    );
    process.stderr.write(`\r${size.prefix}: ${from + some.length} of ${fleet.length} nodes `);
  }
  const pods = fleet.flatMap(({ name, pods }) => pods.map((pod) => podObject(pod, name)));
  await client.sendAll(
    pods.map((body) => ({ method: "POST", path: "/api/v1/namespaces/default/pods", body })),
  );
  client.close();
  process.stderr.write(`and ${pods.length} pods\n`);
  return fleet;
}

/** Applies the bench's only policy, replacing the previous one. */
export async function applyPolicy({ plane }: BenchWorld, spec: object): Promise<void> {
  const path = "/apis/lastcall.dev/v1alpha1/departurepolicies";
  await plane.request({ method: "DELETE", path: `${path}/spot` });
  const { status, body } = await plane.request({
    method: "POST",
    path,
    body: {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "DeparturePolicy",
      metadata: { name: "spot" },
      spec,
    },
  });
  if (status !== 201) throw new Error(`Cannot create the policy: ${status} ${body.message}`);
}

/** Waits until all new pods run; until then the control plane is too busy to measure anything. */
export function untilPodsRun({ plane }: BenchWorld): Promise<true> {
  const path = "/api/v1/namespaces/default/pods?limit=1&fieldSelector=status.phase%3DPending";
  return waitUntil(
    async () => {
      const { body } = await plane.request({ path });
      return body.items.length === 0 && true;
    },
    {
      what: "every pod runs",
      timeoutMs: 900_000,
      intervalMs: 1000,
      signal: plane.signal,
    },
  );
}

/** Lets a control plane that has just been busy settle. */
export async function rest(seconds: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}
