import { expect, it } from "vitest";
import type { KubeObject } from "../../src/contracts/kube-api.ts";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import type { ModelWorld } from "../support/model-world.ts";
import { capacityStory, depart, hasEnded, ledgerOf, workload } from "./capacity-story.ts";

const jobPod = "/api/v1/namespaces/default/pods/job-1";

function addJob(world: ModelWorld): void {
  world.create("/api/v1/namespaces/default/pods", {
    ...{ apiVersion: "v1", kind: "Pod" },
    metadata: { name: "job-1", namespace: "default", labels: { app: "job" } },
    spec: { nodeName: "n0", containers: [{ name: "c", image: "c:1" }] },
  } as KubeObject);
}

/** Rolls a replica out, which leads until the returned function ends it. */
function lead(world: ModelWorld): () => Promise<void> {
  const over = new AbortController();
  const running = world.startController(over.signal);
  return async () => {
    over.abort();
    await running;
  };
}

it.each([
  ["one replica leads", false],
  ["another replica leads after it", true],
])(
  "a drain gets the time that its rule grants a job, which has completed since: %s",
  async (_, isReplaced) => {
    const podRules = [
      { selector: { matchLabels: { app: "job" } }, action: "WaitCompleted", timeout: "1h" },
    ] as unknown as string;
    const world = capacityStory({
      nodes: ["n0"],
      replacement: { when: "None" },
      drain: { timeout: "10m", onTimeout: "RollBack", podRules },
    });
    workload(world, "web", { replicas: 2, cpu: "1", maxUnavailable: 0 });
    addJob(world);
    await world.pass(seconds(30));
    let end = lead(world);
    const startedMs = world.clock.monotonic();
    depart(world, "n0");
    await world.pass(minutes(40));
    world.api.handle({ method: "DELETE", path: jobPod });
    await world.pass(minutes(5));
    if (isReplaced) {
      await end();
      end = lead(world);
    }
    await world.passUntil(hasEnded(world, "n0"), hours(2));
    await end();
    expect(ledgerOf(world, "n0")).toMatchObject({ outcome: "RolledBack" });
    const lastedMs = world.clock.monotonic() - startedMs;
    expect(lastedMs).toBeGreaterThanOrEqual(minutes(70));
    expect(lastedMs).toBeLessThan(minutes(73));
  },
);
