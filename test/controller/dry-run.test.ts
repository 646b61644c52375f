import { describe, expect, it } from "vitest";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, policies, spotPolicy } from "../support/model-world.ts";

const names = ["n0", "n1", "n2", "n3", "n4"];
const lifetime = { max: "6h", reserve: "30m" };

function setReady(world: ModelWorld, name: string, status: string, message = ""): void {
  const path = `${nodes}/${name}/status`;
  const patchType = "application/strategic-merge-patch+json";
  const body = { status: { conditions: [{ type: "Ready", status, message }] } };
  expect(world.api.handle({ method: "PATCH", path, patchType, body }).status).toBe(200);
}

/**
 * Two notices, an unreadable policy, a fleet that becomes unhealthy and recovers, and departures
 * that become due. Returns what a dry run tells of it, and its writes.
 */
async function told(dryRun: "spec.dryRun" | "--dry-run") {
  const world = new ModelWorld();
  for (const name of names) world.addNode(name, "a");
  const isOption = dryRun === "--dry-run";
  spotPolicy(world, { lifetime, ...(isOption ? {} : { dryRun: true }) });
  world.create(policies, {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "DeparturePolicy", metadata: { name: "odd" } },
    spec: {
      nodeSelector: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: "odd", operator: "Exists" }] }],
      },
      windows: [{ timeZone: "Local", start: "22:00", end: "06:00" }],
    },
  });
  const stop = new AbortController();
  const running = world.startController(stop.signal, { dryRun: isOption });
  await world.pass(seconds(30));
  world.notice("n1", seconds(120));
  await world.pass(minutes(1));
  // The mark of the kubelet on a node whose machine is being stopped.
  setReady(world, "n2", "False", "node is shutting down");
  await world.pass(minutes(1));
  for (const name of names) setReady(world, name, "Unknown");
  await world.pass(minutes(1));
  const gauges = new Map(
    [...world.gauges].map(([name, series]) => [name, series.map((one) => ({ ...one }))]),
  );
  for (const name of names) setReady(world, name, "True");
  await world.pass(hours(7));
  stop.abort();
  await running;
  const events = world.events
    .filter(({ about }) => about.kind !== "Departure")
    .map(({ type, reason, message, about: { kind, name } }) => ({
      type,
      reason,
      message,
      kind,
      name,
    }))
    .toSorted((a, b) => (a.reason < b.reason ? -1 : 1));
  const { counted, observed, steps } = world;
  // A write that is refused, since nothing may act.
  const refused = world.logged.filter((line) => line.includes("Cannot act"));
  return { events, gauges, counted, observed, steps, refused, writes: world.writes };
}

describe("run --dry-run", () => {
  it("writes the Events and metrics that spec.dryRun writes, and nothing else", async () => {
    const ofPolicy = await told("spec.dryRun");
    const ofOption = await told("--dry-run");
    expect(ofOption.events.map(({ reason, name }) => `${reason} ${name}`)).toEqual([
      "DepartureScheduled n2",
      "FleetHealthy spot",
      "FleetUnhealthy spot",
      "NoticeReceived n1",
      "NoticeReceived n2",
      "PolicyInvalid odd",
    ]);
    const { writes, ...all } = ofOption;
    expect([...writes, ...all.refused]).toEqual([]);
    expect(all).toEqual({ ...ofPolicy, writes: undefined });
  });
});

it("run --dry-run logs once what it would do with nodes that are late, while time goes on", async () => {
  const world = new ModelWorld();
  for (const name of names) world.addNode(name, "a");
  await world.pass(hours(8));
  spotPolicy(world, { lifetime });
  const stop = new AbortController();
  const running = world.startController(stop.signal, { dryRun: true });
  await world.pass(hours(1));
  const planned = () => world.logged.filter((line) => line.includes("would-schedule"));
  expect(planned()).toHaveLength(names.length);
  world.addNode("n5", "a");
  await world.pass(hours(1));
  expect(planned()).toHaveLength(names.length + 1);
  stop.abort();
  await running;
});
