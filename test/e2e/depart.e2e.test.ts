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
  });

  test("have the cause Manual and end with the outcome Planned", async () => {
    const departures = await world.departures();
    const stories = departures.map(({ spec, status }) => `${spec?.cause} ${status?.outcome}`);
    expect(stories).toEqual(Array(9).fill("Manual Planned"));
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
    await world.startController(await world.controllerKubeconfig(), option);
    const { body } = await world.plane.request({ path: "/api/v1/nodes" });
    const name = nameOf(body.items[0]);
    const { kubeconfig } = world.plane;
    const at = new Date(Date.now() + 20 * 60_000).toISOString();
    const args = ["depart", name, "--at", at, "--kubeconfig", kubeconfig];
    expect((await runLastcall(args, { folder })).code).toBe(0);
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
