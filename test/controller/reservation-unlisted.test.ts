/** Capacity is reserved for pods that the API server refuses to list. */
import { expect, it } from "vitest";
import type {
  KubeRequest,
  KubeWatchEvent,
  KubeWatchRequest,
} from "../../src/contracts/kube-api.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import type { ModelWorld } from "../support/model-world.ts";
import { capacityStory, depart, ledgerOf, noticeOf, workload } from "./capacity-story.ts";

const words = "Internal error occurred: failed calling webhook";
const isList = ({ path, query }: Pick<KubeRequest, "path" | "query">): boolean =>
  path === "/api/v1/pods" && query?.fieldSelector !== undefined;

/** n0 leaves by request, and its pods may not be listed from its departure's start on. */
async function unlisted(onTimeout: string): Promise<{
  readonly world: ModelWorld;
  readonly allow: () => void;
  readonly stop: () => Promise<void>;
}> {
  const world = capacityStory({
    replacement: { when: "BeforeDrain", timeout: "5m", onTimeout },
    drain: { timeout: "10m", onTimeout: "RollBack" },
  });
  workload(world, "web", { replicas: 3, cpu: "1" });
  await world.pass(seconds(30));
  let isRefused = true;
  const { send, watch } = world.watched;
  world.watched.send = async (request) => {
    if (!isRefused || !isList(request)) return send(request);
    return { status: 500, body: { kind: "Status", code: 500, message: words } };
  };
  world.watched.watch = (request) => followed(() => isRefused && isList(request), watch, request);
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

async function* followed(
  isRefused: () => boolean,
  watch: ModelWorld["watched"]["watch"],
  request: KubeWatchRequest,
): AsyncGenerator<KubeWatchEvent> {
  for await (const event of watch(request)) if (!isRefused()) yield event;
}

it("the reservation is over at its timeout, in the server's words", async () => {
  const { world, stop } = await unlisted("RollBack");
  await world.pass(minutes(6));
  await stop();
  const { phase, outcome, reason } = ledgerOf(world, "n0");
  expect({ phase, outcome, reason }).toEqual({
    ...{ phase: "Ended", outcome: "RolledBack", reason: "ReplacementTimeout" },
  });
  expect(JSON.stringify(ledgerOf(world, "n0"))).toContain(words);
  expect(world.marksOf("n0")).toEqual([]);
});

it("a notice ends the reservation at once, and the node is drained as soon as pods are listed", async () => {
  const { world, allow, stop } = await unlisted("RollBack");
  await world.pass(seconds(40));
  expect(ledgerOf(world, "n0").phase).toBe("Preparing");
  noticeOf(world, "n0", seconds(120));
  await world.pass(seconds(2));
  // Under a notice the status is written after the first evictions.
  expect(world.logged.at(-1)).toContain('"from":"Preparing","to":"Draining"');
  allow();
  await world.pass(seconds(20));
  await stop();
  expect(world.podsOn("n0")).toEqual([]);
});
