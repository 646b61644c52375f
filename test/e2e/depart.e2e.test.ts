import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Node } from "kubernetes-types/core/v1.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LastcallProcess, runLastcall } from "../support/lastcall-process.ts";
import { FleetWorld } from "./fleet-world.ts";
import { nameOf } from "./history.ts";
import { judge } from "./judge.ts";
import { mustRun } from "./must-run.ts";

let world: FleetWorld;
let folder: string;
let controller: LastcallProcess;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-depart-"));
  world = await FleetWorld.start();
});

afterAll(async () => {
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("requested departures of nine nodes at once under a budget of one", () => {
  test("run one after another", async () => {
    controller = await world.startController(await world.controllerKubeconfig());
    await world.applyPolicy({ drain: { timeout: "2m", onTimeout: "Wait" } });
    const names = world.nodes.map(nameOf);
    const { kubeconfig } = world.plane;
    const { code, stdout } = await runLastcall(["depart", ...names, "--kubeconfig", kubeconfig], {
      folder,
    });
    expect(code).toBe(0);
    expect(stdout.match(/^departure\/\S+ created: /gm)).toHaveLength(9);
    await world.until("the fleet is rotated", () => world.isRotated(), 240_000);
  });

  test("leave no violation in the observed history", async () => {
    expect(judge(await world.history(), world.charge)).toEqual([]);
    expect(await world.brokenRules()).toEqual([]);
  });

  test("have the cause Manual and end with the outcome Planned", async () => {
    const departures = await world.departures();
    const stories = departures.map(({ spec, status }) => `${spec?.cause} ${status?.outcome}`);
    expect(stories).toEqual(Array(9).fill("Manual Planned"));
  });

  test("have the conditions that kubectl waits for", async () => {
    for (const condition of ["Drained", "Released", "Ended", "Draining=false"]) {
      const args = ["wait", `--for=condition=${condition}`, "departures", "--all", "--timeout=5s"];
      await mustRun(world.plane, args);
    }
  });

  test("are found by kubectl get -l under their policy and their node, in the order of their time", async () => {
    const [one] = await world.departures();
    const nodes = world.nodes.map(nameOf);
    const find = async (...args: readonly string[]) => {
      const { stdout } = await world.plane.kubectl(["get", "departures", "-o", "name", ...args]);
      return stdout.trim().split("\n");
    };
    const order = "--sort-by=.spec.departAt";
    expect(await find("-l", "lastcall.dev/policy=spot", order)).toHaveLength(9);
    const node = nodes.find((name) => one?.metadata?.name?.startsWith(name));
    expect(await find("-l", `lastcall.dev/node=${node}`)).toEqual([
      `departure.lastcall.dev/${one?.metadata?.name}`,
    ]);
    const ended = '{range .items[?(@.status.phase!="Ended")]}{.metadata.name}{"\\n"}{end}';
    const { stdout } = await world.plane.kubectl([
      ...["get", "departures", "-o", `jsonpath=${ended}`],
    ]);
    expect(stdout).toBe("");
  });

  test("tell their story to kubectl describe", async () => {
    const [one] = await world.departures();
    const name = one?.metadata?.name ?? "";
    const { stdout } = await world.plane.kubectl(["describe", "departure", name]);
    const events = stdout.slice(stdout.indexOf("\nEvents:"));
    for (const reason of ["DepartureStarted", "DepartureEnded"]) expect(events).toContain(reason);
    expect(stdout).toMatch(/Timeline:[\s\S]*Step: +Draining[\s\S]*Step: +Ended/);
  });
});

describe("a node with a requested departure in twenty minutes", () => {
  const soon = { key: "lastcall.dev/departing-soon", effect: "PreferNoSchedule" };
  const tainted = async () => {
    const { body } = await world.plane.request({ path: "/api/v1/nodes" });
    const nodes = body.items as readonly Node[];
    return nodes.filter(({ spec }) => spec?.taints?.some(({ key }) => key === soon.key));
  };

  test("gets the soft taint, and loses it when the departure is deleted", async () => {
    await controller.stop();
    const option = ["--prefer-no-schedule", "30m"];
    controller = await world.startController(await world.controllerKubeconfig(), option);
    const { body } = await world.plane.request({ path: "/api/v1/nodes" });
    const name = nameOf(body.items[0]);
    const { kubeconfig } = world.plane;
    const at = new Date(Date.now() + 20 * 60_000).toISOString();
    const args = ["depart", name, "--at", at, "--kubeconfig", kubeconfig];
    expect((await runLastcall(args, { folder })).code).toBe(0);
    const made = (await world.departures()).find(({ spec }) => spec?.departAt === at);
    const departure = `departure/${made?.metadata?.name}`;
    await mustRun(world.plane, ["wait", "--for=condition=Scheduled", departure, "--timeout=5s"]);
    const [node] = await world.until("a node has the taint", async () => {
      const found = await tainted();
      return found.length > 0 && found;
    });
    expect(node?.metadata?.name).toBe(name);
    expect(node?.spec).toMatchObject({ taints: expect.arrayContaining([soon]) });
    expect(node?.spec?.unschedulable).toBeUndefined();
    await mustRun(world.plane, ["delete", "departures", "--all"]);
    await world.until("no node has it", async () => (await tainted()).length === 0);
  });
});

describe("a node with a requested departure after its deadline", () => {
  const departuresOf = async (uid: string | undefined) =>
    (await world.departures()).filter(({ spec }) => spec?.node?.uid === uid);

  test("leaves as planned before that, as the command and the request report", async () => {
    const { kubeconfig } = world.plane;
    const { body } = await world.plane.request({ path: "/api/v1/nodes" });
    const node: Node = body.items[0];
    const name = nameOf(node);
    const { uid, creationTimestamp = "" } = node.metadata ?? {};
    const ageSeconds = Math.round((Date.now() - Date.parse(creationTimestamp)) / 1000);
    await mustRun(world.plane, ["label", "node", name, "e2e.lastcall.dev/late=true"]);
    await mustRun(world.plane, ["apply", "-f", "-"], {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "DeparturePolicy",
      metadata: { name: "late" },
      spec: {
        nodeSelector: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: "e2e.lastcall.dev/late", operator: "Exists" }] },
          ],
        },
        // Its deadline is in a minute.
        lifetime: { max: `${ageSeconds + 120}s`, reserve: "60s" },
      },
    });
    await world.until("it is planned", async () => (await departuresOf(uid)).length > 0);
    const at = new Date(Date.now() + 2 * 3_600_000).toISOString();
    const args = ["depart", name, "--at", at, "--kubeconfig", kubeconfig];
    const { code, stderr } = await runLastcall(args, { folder });
    expect(code).toBe(0);
    expect(stderr).toContain("leaves as planned before that");
    await world.until("the request says so", async () =>
      (await departuresOf(uid)).some(({ status }) => status?.reason === "DeadlineFirst"),
    );
    const ended = await world.until("both have ended", async () => {
      const found = await departuresOf(uid);
      return found.every(({ status }) => status?.phase === "Ended") && found;
    });
    expect(ended.map(({ spec, status }) => `${spec?.cause} ${status?.outcome}`).toSorted()).toEqual(
      ["Manual Cancelled", "Planned Planned"],
    );
  });
});

describe("a node that is uncordoned while no controller runs", () => {
  const held = "/api/v1/namespaces/default/pods/held";
  const budget = {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name: "held" },
    spec: { minAvailable: 1, selector: { matchLabels: { app: "held" } } },
  };

  test("stays, and no pod is evicted when the next controller starts", async () => {
    const { plane } = world;
    const { body } = await plane.request({ path: "/api/v1/nodes" });
    const name = nameOf(body.items[0]);
    await mustRun(plane, ["apply", "-f", "-"], budget);
    await mustRun(plane, ["apply", "-f", "-"], {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "held", labels: { app: "held" } },
      spec: { nodeName: name, containers: [{ name: "main", image: "registry.example/main:1" }] },
    });
    await world.until("the pod runs", async () => {
      const { body: pod } = await plane.request({ path: held });
      return pod.status?.phase === "Running";
    });
    const { kubeconfig } = plane;
    expect((await runLastcall(["depart", name, "--kubeconfig", kubeconfig], { folder })).code).toBe(
      0,
    );
    const own = async () =>
      (await world.departures()).find(
        ({ spec, status }) =>
          spec?.node?.name === name && spec.cause === "Manual" && status?.phase !== "Ended",
      );
    const departure = await world.until("the budget blocks its drain", async () => {
      const found = await own();
      return found?.status?.reason === "DrainBlocked" && found;
    });
    await controller.stop();
    await mustRun(plane, ["uncordon", name]);
    await mustRun(plane, ["delete", "pdb", "held"]);
    controller = await world.startController(await world.controllerKubeconfig());
    const ended = await world.until("its departure has ended", async () =>
      (await world.departures()).find(
        ({ metadata, status }) =>
          metadata?.uid === departure.metadata?.uid && status?.phase === "Ended",
      ),
    );
    expect(ended.status).toMatchObject({ outcome: "Cancelled", reason: "CancelledByPerson" });
    const { body: node } = await plane.request({ path: `/api/v1/nodes/${name}` });
    expect(node.spec.unschedulable).toBeUndefined();
    const { status, body: pod } = await plane.request({ path: held });
    expect(status).toBe(200);
    expect(pod.metadata.deletionTimestamp).toBeUndefined();
  });
});
