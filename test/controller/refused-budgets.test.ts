/** A planned drain whose budgets the API server fails to list. */
import { expect, it } from "vitest";
import { minutes, seconds } from "../../src/core/time/time.ts";
import type { ModelWorld } from "../support/model-world.ts";
import { capacityStory, depart, hasEnded, ledgerOf, noticeOf, workload } from "./capacity-story.ts";

const words = "Internal error occurred: failed calling webhook";
const budgets = "/apis/policy/v1/poddisruptionbudgets";

/** n0 leaves by request, and budgets may not be listed from then on. */
async function unlisted(): Promise<{
  readonly world: ModelWorld;
  readonly allow: () => void;
  readonly stop: () => Promise<void>;
}> {
  const world = capacityStory({
    replacement: { when: "None" },
    drain: { timeout: "2m", onTimeout: "RollBack" },
  });
  workload(world, "web", { replicas: 3, cpu: "1", maxUnavailable: 1 });
  await world.pass(seconds(30));
  let isRefused = true;
  const { send } = world.watched;
  world.watched.send = async (request) => {
    if (!isRefused || request.path !== budgets) return send(request);
    return { status: 500, body: { kind: "Status", code: 500, message: words } };
  };
  const over = new AbortController();
  const running = world.startController(over.signal);
  depart(world, "n0");
  const stop = async () => {
    over.abort();
    await running;
  };
  const allow = () => {
    isRefused = false;
  };
  return { world, allow, stop };
}

it("is given up at its timeout and not before, in the server's words", async () => {
  const { world, stop } = await unlisted();
  await world.pass(seconds(100));
  expect(ledgerOf(world, "n0").phase).toBe("Draining");
  await world.pass(seconds(60));
  await stop();
  const { outcome, reason, message } = ledgerOf(world, "n0");
  expect({ outcome, reason }).toEqual({ outcome: "RolledBack", reason: "RequestRefused" });
  expect(message).toContain(words);
  expect(world.marksOf("n0")).toEqual([]);
});

it("goes on when they are listed again", async () => {
  const { world, allow, stop } = await unlisted();
  await world.pass(seconds(60));
  allow();
  await world.passUntil(hasEnded(world, "n0"), minutes(3));
  await stop();
  expect(ledgerOf(world, "n0").outcome).toBe("Planned");
});

it("goes on without them at a notice", async () => {
  const { world, stop } = await unlisted();
  await world.pass(seconds(60));
  noticeOf(world, "n0", seconds(120));
  await world.pass(seconds(10));
  await stop();
  expect(world.podsOn("n0")).toEqual([]);
});
