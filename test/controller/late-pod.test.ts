import { describe, expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

/** As a scheduler binds it that had chosen the node before the cordon. */
function bindLate(world: ModelWorld, node: string): void {
  world.create("/api/v1/namespaces/default/pods", {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "late", namespace: "default", labels: { app: "late" } },
    spec: { nodeName: node, containers: [{ name: "late", image: "late:1" }] },
  });
}

/** A rotation of n1 in which a pod comes just as the drain is written down as over. */
async function rotation(late: "None" | "Late") {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  spotPolicy(world, { drain: { timeout: "5m", onTimeout: "Wait" } });
  await world.pass(seconds(5));
  let came = late === "None";
  world.beforeWrite = ({ path, body }) => {
    const isOver = path.endsWith("/status") && JSON.stringify(body).includes('"phase":"Releasing"');
    if (!isOver || came) return;
    came = true;
    bindLate(world, "n1");
  };
  const onNode: number[] = [];
  world.onRelease = () => onNode.push(world.podsOn("n1").length);
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
  world.create("/apis/lastcall.dev/v1alpha1/departures", {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "n1-asked" },
    spec: { node: { name: "n1", uid }, cause: "Manual", source: "person" },
  });
  await world.passUntil(() => world.released.length === 1, minutes(5));
  stop.abort();
  await running;
  return { onNode, steps: world.stepsOf("n1") };
}

describe("a pod that is bound to a node after its last pod has left", () => {
  it("leaves by eviction as the others did, before the machine goes", async () => {
    expect(await rotation("Late")).toEqual({
      onNode: [0],
      steps: ["cordon", "evict", "evict", "evict", "release", "remove"],
    });
  });

  it("is the only reason to evict again", async () => {
    const { steps } = await rotation("None");
    expect(steps).toEqual(["cordon", "evict", "evict", "release", "remove"]);
  });
});
