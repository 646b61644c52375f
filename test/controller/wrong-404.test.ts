/** Something in front of the API server answers, in its words, that a Departure is not there. */
import { expect, it } from "vitest";
import { formatInstant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { departures } from "../support/model-world.ts";
import { capacityStory, depart, ledgerOf, workload } from "./capacity-story.ts";

const notFound = 'departures.lastcall.dev "n0-notice" not found';
const body = { kind: "Status", code: 404, reason: "NotFound", message: notFound };

it.each([
  ["the finalizer", /\/departures\/[^/]+$/, 1],
  ["the status", /\/departures\/.+\/status$/, 1],
  ["the status, three times", /\/departures\/.+\/status$/, 3],
])("a node under a notice is drained all the same: %s is not written", async (_, path, times) => {
  const world = capacityStory({ replacement: { when: "None" } });
  workload(world, "web", { replicas: 3, cpu: "1", maxUnavailable: 1 });
  await world.pass(seconds(30));
  const { send } = world.watched;
  let wrong = 0;
  world.watched.send = async (request) => {
    if (request.method !== "PATCH" || !path.test(request.path) || wrong === times)
      return send(request);
    wrong += 1;
    return { status: 404, body };
  };
  const over = new AbortController();
  const running = world.startController(over.signal);
  await world.pass(seconds(5));
  const now = world.clock.now();
  const { uid } = world.get("/api/v1/nodes/n0")?.metadata ?? {};
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "n0-notice" },
    spec: {
      ...{ node: { name: "n0", uid }, cause: "SpotInterruption", source: "agent/n0" },
      noticedAt: formatInstant(now),
      deadlineAt: formatInstant(plus(now, minutes(2))),
    },
  });
  await world.pass(minutes(1));
  expect(wrong).toBe(times);
  expect(world.podsOn("n0")).toEqual([]);
  expect(ledgerOf(world, "n0").phase).toBe("Releasing");
  over.abort();
  await running;
});

it("a departure that is said to be gone, and that the watch still shows, is tried once a minute", async () => {
  const world = capacityStory({ replacement: { when: "None" } });
  await world.pass(seconds(30));
  const { send } = world.watched;
  let writes = 0;
  let isSaid = true;
  world.watched.send = async (request) => {
    const isOfDeparture = /\/departures\/[^/]+(\/status)?$/.test(request.path);
    if (!isSaid || !isOfDeparture || request.method === "GET") return send(request);
    writes += 1;
    return { status: 404, body };
  };
  const over = new AbortController();
  const running = world.startController(over.signal);
  depart(world, "n0");
  await world.pass(minutes(60));
  // A start is two writes: the finalizer and the status.
  expect(writes).toBeGreaterThan(60);
  expect(writes).toBeLessThan(130);
  const told = world.events.filter(({ reason }) => reason === "RequestRefused");
  expect(told.some(({ message }) => message.includes("that it does not exist"))).toBe(true);
  isSaid = false;
  await world.pass(minutes(5));
  expect(ledgerOf(world, "n0").phase).toBe("Ended");
  over.abort();
  await running;
});
