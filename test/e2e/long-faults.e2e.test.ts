/**
 * Faults that last longer than every timeout, on the real control plane. Hours are scaled to
 * seconds by the policies' own lifetimes and timeouts, and it is the API server that refuses. Each
 * scene has its own nodes and its own policy.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Node, Pod } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { millis } from "../../src/core/time/time.ts";
import { type ControlPlane, startControlPlane } from "../support/control-plane.ts";
import { writeKubeconfig } from "../support/control-plane-files.ts";
import { freePort } from "../support/free-port.ts";
import { createNodes } from "../support/kwok-fleet.ts";
import { type LastcallProcess, runLastcall, startAsPod } from "../support/lastcall-process.ts";
import { type Relay, startRelay } from "../support/relay.ts";
import { Cloud } from "./cloud.ts";
import {
  allowCordons,
  occupy,
  refuseCordons,
  refusePods,
  setReady,
  silence,
} from "./lasting-faults.ts";
import { mustRun } from "./must-run.ts";
import { PlaneReader } from "./plane-reader.ts";
import { untilAlive } from "./until-alive.ts";

const deploy = join(import.meta.dirname, "..", "..", "deploy");
const zone = "europe-west1-b";

let plane: ControlPlane;
let reader: PlaneReader;
let cloud: Cloud;
let relay: Relay;
let folder: string;
let isApiAway = false;
const processes = new Set<LastcallProcess>();
/** When each node was first seen cordoned, by name. */
const cordons = new Map<string, number>();
const stopLooking = new AbortController();
let looking: Promise<void>;

beforeAll(async () => {
  plane = await startControlPlane();
  reader = new PlaneReader(plane);
  folder = mkdtempSync(join(tmpdir(), "lastcall-long-faults-"));
  await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
  for (const file of ["namespace.yaml", "rbac.yaml"]) {
    await mustRun(plane, ["apply", "-f", join(deploy, "base", file)]);
  }
  // What is released is not replaced while these tests run: every zone is out of stock.
  cloud = await Cloud.start(plane, { createMs: millis(3_600_000) });
  relay = await startRelay({
    target: plane.url,
    ca: () => readFileSync(plane.caFile, "utf8"),
    before: () => Promise.resolve(isApiAway ? "Drop" : "Pass"),
  });
  await startController();
  looking = look();
});

afterAll(async () => {
  stopLooking.abort();
  await looking;
  await Promise.all([...processes].map((one) => one.kill()));
  await relay?.close();
  await cloud?.stop();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("a fault that lasts", () => {
  test.concurrent("in one drain: the others leave apart at the end of their lives", async () => {
    const nodes = await scene("crowd", 5, {
      lifetime: { max: "75s", reserve: "25s" },
      spacing: { mode: "Late", min: "4s" },
      budgets: [{ nodes: 1 }],
      drain: { timeout: "10m", onTimeout: "Wait" },
    });
    await occupy(plane, nodes, { graceSeconds: 600, exitAfter: "600s" });
    const at = await until("all are cordoned", async () => {
      const times = nodes.flatMap((name) => cordons.get(name) ?? []);
      return times.length === nodes.length && times.sort((a, b) => a - b);
    });
    const gaps = at.slice(1).map((one, place) => one - (at[place] as number));
    // A second of the poll's and the pass's delay.
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(3000);
  });

  test.concurrent("in a policy on Nodes: a freeze that came meanwhile holds the start", async () => {
    await refuseCordons(plane, "late-start");
    // One of two leaves at once, because that is as far from the other as it gets.
    const nodes = await scene("late-start", 2, {
      lifetime: { max: "10m", reserve: "5s" },
      spacing: { mode: "Even", min: "5s" },
    });
    const name = await until("a start is refused", () =>
      reader.whoIs(nodes, { phase: "Preparing" }),
    );
    await patchPolicy("late-start", { gates: { freezeUntil: "2099-01-01T00:00:00Z" } });
    await until("its departure is held again", () =>
      reader.whoIs([name], { phase: "Held", reason: "Frozen" }),
    );
    await allowCordons(plane, "late-start");
    await pass(10_000);
    expect(nodes.filter((one) => cordons.has(one))).toEqual([]);
  });

  test.concurrent("in one cordon: its start is given up in the server's words", async () => {
    await refuseCordons(plane, "refused");
    const [name = ""] = await scene("refused", 1, { lifetime: { max: "15s", reserve: "5s" } });
    // It is planned again at once, in another departure.
    const { status } = await until("it is given up", async () =>
      (await reader.departures()).find(
        ({ spec, status: its }) => spec?.node?.name === name && its?.phase === "Ended",
      ),
    );
    expect(status).toMatchObject({ outcome: "RolledBack", reason: "RequestRefused" });
    expect(status?.message).toContain("no cordon in scene refused");
    const about = `involvedObject.name=${name}`;
    const { stdout } = await plane.kubectl([
      "get",
      "events",
      "--field-selector",
      about,
      "-o",
      "json",
    ]);
    expect(stdout).toContain("no cordon in scene refused");
  });

  test.concurrent("in a policy on pods: no machine is released with a pod that nobody could ask", async () => {
    const [name = ""] = await scene("refusing", 1, {
      paused: true,
      lifetime: { max: "40s", reserve: "20s" },
      drain: { timeout: "8s", onTimeout: "Proceed" },
      instance: { release: "Recreate" },
    });
    await occupy(plane, [name], { graceSeconds: 2, exitAfter: "1s" });
    await refusePods(plane, "refusing");
    await patchPolicy("refusing", { paused: false });
    const { status } = await until("it is given up", async () =>
      (await reader.departures()).find(
        ({ spec, status: its }) => spec?.node?.name === name && its?.phase === "Ended",
      ),
    );
    expect(status).toMatchObject({ outcome: "RolledBack", reason: "DrainTimeout" });
    expect(status?.message).toContain("no pod leaves scene refusing");
    expect((await reader.nodeOf(name)).spec?.unschedulable).toBeUndefined();
    expect(cloud.releases.filter(({ machine }) => machine === name)).toEqual([]);
  });

  test.concurrent("in every kubelet: nobody starts, and no machine is released", async () => {
    const nodes = await scene("silent", 3, {
      lifetime: { max: "40s", reserve: "10s" },
      spacing: { mode: "Late", min: "2s" },
      drain: { timeout: "5s", onTimeout: "RollBack" },
      instance: { release: "Recreate" },
    });
    await silence(plane, nodes);
    await until("the policy says so", async () => {
      const { body } = await plane.request({ path: policyPath("silent") });
      const conditions: readonly { readonly reason: string }[] = body.status?.conditions ?? [];
      return conditions.some(({ reason }) => reason === "FleetUnhealthy");
    });
    // Past the end of their lifetimes.
    await pass(50_000);
    expect(nodes.filter((name) => cordons.has(name))).toEqual([]);
    expect(cloud.releases.filter(({ machine }) => nodes.includes(machine))).toEqual([]);
  });

  test.concurrent("in a kubelet after its shutdown: its notice is not withdrawn", async () => {
    const [name = ""] = await scene("shut-down", 1, {});
    await setReady(plane, [name], { status: "False", message: "node is shutting down" });
    await until("it is cordoned", async () => cordons.has(name));
    await silence(plane, [name]);
    await pass(20_000);
    const node = await reader.nodeOf(name);
    expect(node.spec?.unschedulable).toBe(true);
    const { status } = await reader.departureOf(name);
    expect(status?.outcome).not.toBe("Cancelled");
  });

  test.concurrent("in a kubelet that answers again: its pods have their grace from then on", async () => {
    const [name = ""] = await scene("returning", 1, {
      paused: true,
      lifetime: { max: "40s", reserve: "20s" },
      drain: { timeout: "10m", onTimeout: "Wait" },
      instance: { release: "Recreate" },
    });
    const [app = ""] = await occupy(plane, [name], { graceSeconds: 25, exitAfter: "600s" });
    await silence(plane, [name]);
    await mustRun(plane, ["scale", "deployment", app, "--replicas=0"]);
    // A minute after its grace, a pod that still terminates counts as stuck.
    await pass(88_000);
    await setReady(plane, [name], { status: "True", message: "kubelet is posting ready status" });
    await patchPolicy("returning", { paused: false });
    await until("it is cordoned", async () => cordons.has(name));
    await pass(10_000);
    expect((await reader.departureOf(name)).status?.phase).toBe("Draining");
    expect(cloud.releases.filter(({ machine }) => machine === name)).toEqual([]);
  });

  test.concurrent("in a drain whose node has left the selector: it is still out", async () => {
    const nodes = await scene("relabelled", 2, {
      lifetime: { max: "40s", reserve: "20s" },
      spacing: { mode: "Late", min: "2s" },
      budgets: [{ nodes: 1 }],
      drain: { timeout: "10m", onTimeout: "Wait" },
    });
    await occupy(plane, nodes, { graceSeconds: 600, exitAfter: "600s" });
    const first = await until("the first is cordoned", async () =>
      nodes.find((name) => cordons.has(name)),
    );
    await mustRun(plane, ["label", "node", first, "scene=elsewhere", "--overwrite"]);
    // The other one is due two seconds later; its lifetime ends twenty seconds after that.
    await pass(10_000);
    expect(nodes.filter((name) => cordons.has(name))).toEqual([first]);
  });
});

describe("a stock-out", () => {
  test("lets a request for all nodes take one of them", async () => {
    const nodes = await scene("stock-out", 4, {
      budgets: [{ nodes: 1 }],
      instance: { release: "Recreate" },
    });
    const made = await runLastcall(["depart", ...nodes, "--kubeconfig", plane.kubeconfig], {
      folder,
    });
    expect(made.code).toBe(0);
    await until("one machine is gone", async () => {
      const there = await Promise.all(nodes.map((name) => reader.isThere(name)));
      return there.filter((one) => !one).length === 1;
    });
    await pass(20_000);
    expect(nodes.filter((name) => cordons.has(name))).toHaveLength(1);
    const waiting = nodes.filter((name) => !cordons.has(name));
    const standing = await Promise.all(waiting.map((name) => reader.departureOf(name)));
    expect(standing.map(({ status }) => status?.reason)).toEqual(Array(3).fill("BudgetSpent"));
  });
});

describe("an API server that is away for longer than the drain's timeout", () => {
  test("costs no pod its eviction before the machine is released", async () => {
    const [name = ""] = await scene("away", 1, {
      lifetime: { max: "30s", reserve: "10s" },
      drain: { timeout: "5s", onTimeout: "Proceed" },
      instance: { release: "Recreate" },
    });
    const pods = await occupy(plane, [name], { graceSeconds: 5, exitAfter: "1s" });
    await until("it is cordoned", async () => {
      // From the very instant of the cordon on, before the first eviction.
      isApiAway = cordons.has(name) || (await reader.nodeOf(name)).spec?.unschedulable === true;
      return isApiAway;
    });
    await pass(30_000);
    isApiAway = false;
    await until("its machine is gone", async () => !(await reader.isThere(name)), 120_000);
    const then = cloud.releases.find(({ machine }) => machine === name)?.podsThen ?? [];
    const asked = (pod: Pod): boolean => pod.metadata?.deletionTimestamp !== undefined;
    expect(then.filter((pod) => pods.includes(pod.metadata?.labels?.app ?? ""))).toSatisfy(
      (left: readonly Pod[]) => left.every(asked),
    );
  });
});

describe("a departure that is deleted while nobody leads", () => {
  test("is undone by the next leader, and only then gone", async () => {
    const [name = ""] = await scene("deleted", 1, {
      lifetime: { max: "15s", reserve: "5s" },
      drain: { timeout: "10m", onTimeout: "Wait" },
    });
    await occupy(plane, [name], { graceSeconds: 600, exitAfter: "600s" });
    await until(
      "it drains",
      async () => (await reader.departureOf(name)).status?.phase === "Draining",
    );
    await Promise.all([...processes].map((one) => one.kill()));
    await patchPolicy("deleted", { paused: true });
    const { metadata } = await reader.departureOf(name);
    await mustRun(plane, ["delete", "departure", metadata?.name ?? "", "--wait=false"]);
    expect((await reader.nodeOf(name)).spec?.unschedulable).toBe(true);
    expect((await reader.departureOf(name)).metadata?.deletionTimestamp).toBeDefined();
    await startController();
    await until("the node is in use again", async () => {
      const { spec } = await reader.nodeOf(name);
      return spec?.unschedulable !== true && !JSON.stringify(spec).includes("lastcall.dev");
    });
    await until("the departure is gone", async () => {
      const all = await reader.departures();
      return all.every((one) => one.metadata?.name !== metadata?.name);
    });
  });
});

describe("definitions that are deleted while a node drains", () => {
  test("are gone once the node is in use again, and work once they are back", async () => {
    const [name = ""] = await scene("uninstalled", 1, {
      lifetime: { max: "15s", reserve: "5s" },
      drain: { timeout: "10m", onTimeout: "Wait" },
    });
    await occupy(plane, [name], { graceSeconds: 600, exitAfter: "600s" });
    await until(
      "it drains",
      async () => (await reader.departureOf(name)).status?.phase === "Draining",
    );
    await mustRun(plane, ["delete", "-k", join(deploy, "crds"), "--wait=false"]);
    await until("the node is in use again", async () => {
      const { spec } = await reader.nodeOf(name);
      return spec?.unschedulable !== true && !JSON.stringify(spec).includes("lastcall.dev");
    });
    await until("the definitions are gone", async () => {
      const { stdout } = await plane.kubectl(["get", "crds", "-o", "name"]);
      return !stdout.includes("lastcall.dev");
    });
    await mustRun(plane, ["apply", "-k", join(deploy, "crds")]);
    const crds = ["crd/departurepolicies.lastcall.dev", "crd/departures.lastcall.dev"];
    await mustRun(plane, ["wait", "--for=condition=Established", ...crds]);
    const [next = ""] = await scene("installed-again", 1, {
      lifetime: { max: "20s", reserve: "5s" },
    });
    await until("the next node leaves", async () => cordons.has(next));
  });
});

/** Creates nodes that a policy of their own selects. Returns their names. */
async function scene(name: string, count: number, spec: object): Promise<readonly string[]> {
  const nodes = Array.from({ length: count }, (_, place) => `${name}-${place}`);
  await createNodes(
    plane,
    nodes.map((one) => ({ name: one, zone, labels: { scene: name } })),
  );
  cloud.adopt(nodes.map((one) => ({ name: one, zone })));
  const values = [name];
  const matchExpressions = [
    { key: "scene", operator: "In", values },
    { key: "probe", operator: "DoesNotExist" },
  ];
  const nodeSelectorTerms = [{ matchExpressions }];
  await mustRun(plane, ["apply", "-f", "-"], {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata: { name } },
    spec: { nodeSelector: { nodeSelectorTerms }, instance: { release: "None" }, ...spec },
  });
  return nodes;
}

const policyPath = (name: string): string =>
  `/apis/lastcall.dev/v1alpha1/departurepolicies/${name}`;

async function patchPolicy(name: string, spec: object): Promise<void> {
  const patch = JSON.stringify({ spec });
  await mustRun(plane, ["patch", "departurepolicy", name, "--type=merge", "-p", patch]);
}

async function startController(): Promise<void> {
  const file = join(folder, "kubeconfig");
  const token = await plane.tokenFor("lastcall", "lastcall");
  writeKubeconfig({ file, url: relay.url, caFile: plane.caFile, token, user: "lastcall" });
  const address = async () => `127.0.0.1:${await freePort()}`;
  const flags = ["--health-address", await address(), "--metrics-address", await address()];
  const args = ["run", "--kubeconfig", file, "--gcp-endpoint", cloud.endpoint, ...flags];
  const started = startAsPod(args, { folder });
  processes.add(started);
  void started.ended.then(() => processes.delete(started));
}

/** Notes who is cordoned, from outside. */
async function look(): Promise<void> {
  while (!stopLooking.signal.aborted) {
    const { body } = await plane.request({ path: "/api/v1/nodes" });
    for (const { metadata, spec } of body.items as readonly Node[]) {
      const name = metadata?.name ?? "";
      if (spec?.unschedulable === true && !cordons.has(name)) cordons.set(name, Date.now());
    }
    await pass(100);
  }
}

/** Time in which nothing must happen; what has to happen is waited for. */
function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function until<T>(
  what: string,
  holds: () => Promise<T | false | undefined>,
  timeoutMs = 150_000,
): Promise<T> {
  return untilAlive(holds, { what, timeoutMs }, { plane, processes });
}
