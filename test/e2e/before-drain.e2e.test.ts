import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { judgeCapacity, placeholderImages } from "./capacity-judge.ts";
import { FleetWorld } from "./fleet-world.ts";

const leaving = "spot-1";
const departuresPath = "/apis/lastcall.dev/v1alpha1/departures";
let world: FleetWorld;

beforeAll(async () => {
  world = await FleetWorld.start();
});

afterAll(() => world?.stop());

describe("a node of nine that a person lets go, with replacement BeforeDrain", () => {
  test("leaves as planned", async () => {
    const kubeconfig = await world.controllerKubeconfig();
    await world.startController(kubeconfig, ["--placeholder-image", "registry.example/pause:1"]);
    await world.applyPolicy({
      replacement: { when: "BeforeDrain", timeout: "2m", onTimeout: "RollBack" },
      drain: { timeout: "2m", onTimeout: "Wait" },
    });
    await depart();
    const ended = await world.until("the departure has ended", async () => {
      const [departure] = await world.departures();
      return departure?.status?.phase === "Ended" && departure;
    });
    expect(ended.status?.outcome).toBe("Planned");
  });

  test("has room for each pod before the first has to go, and gives it up pod by pod", async () => {
    expect(judgeCapacity(await world.history(), leaving)).toEqual([]);
  });

  test("runs in the placeholders what run was told", async () => {
    expect(placeholderImages(await world.history())).toEqual(new Set(["registry.example/pause:1"]));
  });
});

async function depart(): Promise<void> {
  const node = world.nodes.find(({ metadata }) => metadata?.name === leaving);
  const { uid = "" } = node?.metadata ?? {};
  const { status, body } = await world.plane.request({
    method: "POST",
    path: departuresPath,
    body: {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: `${leaving}-${uid.slice(0, 8)}` },
      spec: {
        node: { name: leaving, uid, providerID: node?.spec?.providerID },
        cause: "Manual",
        policy: "spot",
      },
    },
  });
  expect([status, body.message]).toEqual([201, undefined]);
}
