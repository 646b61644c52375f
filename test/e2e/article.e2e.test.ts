/**
 * The article's steps with its unchanged values, with Lastcall instead of estafette's killer: nine
 * preemptible nodes on Compute Engine, rotated by the ServiceAccount and the policy that these
 * values install. The article's Google role may only delete instances.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Node } from "kubernetes-types/core/v1.js";
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { computePermissions } from "../../src/cloud/gcp/permissions.ts";
import { hours, instant, minus, minutes, seconds } from "../../src/core/time/time.ts";
import type { DoctorReport } from "../../src/doctor/report.ts";
import { chart, helm } from "../support/helm.ts";
import { type LastcallProcess, runLastcall } from "../support/lastcall-process.ts";
import { FleetWorld } from "./fleet-world.ts";
import { isReady, nameOf, type RawDeparture } from "./history.ts";
import { judge } from "./judge.ts";
import { mustRun } from "./must-run.ts";

const values = join(import.meta.dirname, "../data/estafette/article-values.yaml");
const account = "gke-preemptible-killer";
const namespace = "gke-vm-killer";
/** `lifetime.max` less `lifetime.reserve` of the policy that the values make. */
const oldest = hours(23.5);
/** All nine nodes have to leave within this time. */
const leaveWithin = seconds(150);

let world: FleetWorld;
let folder: string;
let controller: LastcallProcess;
/** Each command with the seconds that it took. */
const commands: { readonly command: string; readonly seconds: number }[] = [];
let addPermissions: readonly string[] = [];
let restartedMs = 0;
/** The names of the controller's pods that the restart replaces. */
const restarted = new Set<string>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-article-"));
  world = await FleetWorld.start({ bare: true });
  for (const { permission } of computePermissions) {
    if (permission !== "compute.instances.delete") world.cloud.deny(permission);
  }
});

afterAll(async () => {
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function timed<T>(command: string, run: () => T | Promise<T>): Promise<T> {
  const startMs = performance.now();
  const result = await run();
  commands.push({ command, seconds: (performance.now() - startMs) / 1000 });
  return result;
}

/** Runs what the pods of the installed Deployment would; kwok only simulates them. */
async function startController(): Promise<void> {
  const token = await world.plane.tokenFor(namespace, account);
  const kubeconfig = world.plane.kubeconfigFor(account, token);
  controller = await world.startController(kubeconfig, ["--namespace", namespace]);
  await world.until("it leads", async () => {
    const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/lastcall`;
    return (await world.plane.request({ path })).body.spec?.holderIdentity?.length > 0;
  });
}

async function doctor(): Promise<DoctorReport> {
  const flags = ["--kubeconfig", world.plane.kubeconfig, "--gcp-endpoint", world.cloud.endpoint];
  const args = ["doctor", "-n", namespace, "-o", "json", ...flags];
  return JSON.parse((await runLastcall(args, { folder })).stdout);
}

async function nodesNow(): Promise<readonly Node[]> {
  return (await world.plane.request({ path: "/api/v1/nodes" })).body.items;
}

describe("the article's values", () => {
  test("are installed by Helm, whose notes contain the command that extends the role", async () => {
    const args = ["upgrade", "--install", account, chart, "--create-namespace"];
    const { kubeconfig } = world.plane;
    const { stdout, stderr, code } = await timed("helm upgrade --install", () =>
      helm([...args, "--namespace", namespace, "--values", values], { home: folder, kubeconfig }),
    );
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    const line = stdout.split("\n").find((one) => one.includes("gcloud iam roles update"));
    addPermissions = line?.split("--add-permissions ")[1]?.split(",") ?? [];
    expect(addPermissions).toContain("compute.instanceGroupManagers.update");
    await world.until("departures can be listed", async () => {
      const path = "/apis/lastcall.dev/v1alpha1/departures";
      return (await world.plane.request({ path })).status === 200;
    });
    // All nodes are preemptible, and both replicas run on them.
    await world.until("both replicas run", async () => {
      const path = `/apis/apps/v1/namespaces/${namespace}/deployments/lastcall`;
      return (await world.plane.request({ path })).body.status?.availableReplicas === 2;
    });
    await world.onlooker.start();
    await startController();
  });

  test("need more than the article's Google role, as doctor reports", async () => {
    const { checks } = await timed("lastcall doctor", doctor);
    const refused = checks.find(({ id }) => id === "cloud-permissions");
    expect(refused).toMatchObject({ status: "Fail" });
    expect(refused?.message).toContain("compute.instances.get");
    const rights = checks.filter(({ id }) => id === "rights" || id === "lease");
    expect(rights.map(({ status }) => status)).toEqual(["Pass", "Pass"]);
  });

  test("hold a requested departure with that role, and no node is cordoned", async () => {
    const args = ["depart", "spot-1", "--kubeconfig", world.plane.kubeconfig];
    expect((await runLastcall(args, { folder })).code).toBe(0);
    await world.until("the departure is held for what the role lacks", async () => {
      const asked = (await world.departures()).find(({ spec }) => spec?.cause === "Manual");
      const { phase, reason } = asked?.status ?? {};
      return phase === "Held" && reason === "ReleaseImpossible";
    });
    expect((await nodesNow()).filter(({ spec }) => spec?.unschedulable === true)).toEqual([]);
    await mustRun(world.plane, ["delete", "departures", "--all"]);
  });
});

describe("with the role extended by that command", () => {
  test("the first planned drain starts within five minutes of commands", async () => {
    const startedAt = minus(instant(Date.now()), oldest) + leaveWithin;
    for (const node of world.nodes) world.cloud.startAt(nameOf(node), instant(startedAt));
    await timed("gcloud iam roles update", () => {
      for (const permission of addPermissions) world.cloud.allow(permission);
    });
    for (const pod of await ownPods()) restarted.add(nameOf(pod));
    await timed("kubectl rollout restart", () =>
      mustRun(world.plane, ["rollout", "restart", "deployment", "lastcall", "-n", namespace]),
    );
    await controller.stop();
    restartedMs = performance.now();
    await startController();
    await world.until("the first node is being drained", async () =>
      (await world.departures()).some(
        ({ spec, status }) => spec?.cause === "Planned" && status?.phase === "Draining",
      ),
    );
    const waited = { command: "(until a node is drained)", seconds: 0 };
    commands.push({ ...waited, seconds: (performance.now() - restartedMs) / 1000 });
    const spent = commands.reduce((sum, one) => sum + one.seconds, 0);
    console.log(commands.map((one) => `${one.seconds.toFixed(1)} s  ${one.command}`).join("\n"));
    expect(commands).toHaveLength(5);
    expect(spent).toBeLessThan(minutes(5) / 1000);
  });

  test("all nine nodes are rotated, and the observed history shows no violation", async () => {
    await world.until("nine have departed", () => isRotated(), leaveWithin + minutes(2));
    const departed = (await world.departures()).filter(({ status }) => status?.phase === "Ended");
    expect(departed.map(({ status }) => status?.outcome)).toEqual(Array(9).fill("Planned"));
    const user = `system:serviceaccount:${namespace}:${account}`;
    // The policy has no budget, and its nine plans are less than 20 s apart.
    const charge = { ...world.charge, user, atOnce: 2 };
    const findings = judge(await world.history(), charge);
    // The pods that `kubectl rollout restart` replaced left for that reason, from any node.
    const isOfRestart = (finding: string) => restarted.has(finding.split(" ")[0] ?? "");
    expect(findings.filter((finding) => !isOfRestart(finding))).toEqual([]);
  });
});

/** The controller's pods, of which kwok simulates only the object. */
async function ownPods(): Promise<readonly { readonly metadata?: ObjectMeta }[]> {
  const { body } = await world.plane.request({ path: `/api/v1/namespaces/${namespace}/pods` });
  return body.items;
}

/** Throws with what is missing, which a timeout then quotes. */
async function isRotated(): Promise<true> {
  const departures = await world.departures();
  const ended = departures.filter(({ status }) => status?.phase === "Ended");
  const nodes = await nodesNow();
  const { body } = await world.plane.request({ path: "/api/v1/namespaces/default/pods" });
  const missing = {
    ended: ended.length < world.nodes.length ? departures.map((one) => phaseOf(one)) : [],
    nodes: nodes.length === world.nodes.length ? [] : nodes.map(nameOf),
    unready: nodes.filter((node) => !isReady(node)).map(nameOf),
    cordoned: nodes.filter(({ spec }) => spec?.unschedulable === true).map(nameOf),
    pods: body.items.filter((pod: Parameters<typeof isReady>[0]) => !isReady(pod)).map(nameOf),
  };
  if (Object.values(missing).some(({ length }) => length > 0)) {
    throw new Error(JSON.stringify(missing));
  }
  return true;
}

function phaseOf({ metadata, status }: RawDeparture): string {
  return `${metadata?.name ?? ""} ${status?.phase ?? ""} ${status?.reason ?? ""}`;
}
