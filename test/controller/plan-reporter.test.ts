import { expect, it } from "vitest";
import { formatInstant, plus, seconds } from "../../src/core/time/time.ts";
import { departures, ModelWorld, nodes, spotPolicy } from "../support/model-world.ts";

/** The model starts at midnight UTC: nodes with a lifetime of twelve hours never see the window. */
const never = { name: "late", type: "Allow", timeZone: "UTC", start: "20:00", end: "22:00" };

it("A deadline outside the windows is reported by a reason, a warning Event and a gauge", async () => {
  const world = new ModelWorld();
  for (const name of ["n0", "n1"]) world.addNode(name, "a");
  spotPolicy(world, { lifetime: { max: "12h", reserve: "30m" }, windows: [never] });
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(30));
  expect(world.gauges.get("lastcall_plan_departures")).toEqual([
    { labels: { policy: "spot", reason: "DeadlineBeatsWindow" }, value: 2 },
  ]);
  const loud = world.events.filter(
    ({ reason, about }) => reason === "DeadlineBeatsWindow" && about.kind === "Node",
  );
  expect(loud.map(({ type, about }) => [type, about.name]).toSorted()).toEqual([
    ["Warning", "n0"],
    ["Warning", "n1"],
  ]);
  stop.abort();
  await running;
});

it("The plan has gauges: managed nodes, spacing, and departures by reason and phase", async () => {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, "a");
  spotPolicy(world, { lifetime: { max: "24h", reserve: "30m" }, spacing: { min: "15m" } });
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(30));
  const of = (name: string) => world.gauges.get(name);
  expect(of("lastcall_nodes_managed")).toEqual([{ labels: { policy: "spot" }, value: 3 }]);
  expect(of("lastcall_plan_departures")).toEqual([
    { labels: { policy: "spot", reason: "Spaced" }, value: 3 },
  ]);
  expect(of("lastcall_departures")).toEqual([
    { labels: { policy: "spot", phase: "Scheduled" }, value: 3 },
  ]);
  const series = of("lastcall_plan_spacing_seconds") ?? [];
  const spacing = Object.fromEntries(series.map(({ labels, value }) => [labels.kind, value]));
  expect(spacing).toMatchObject({ wanted: 900, reached: 900 });
  // Three nodes with one launch time have two gaps in 23.5 hours, less the time until the last
  // plan.
  expect(spacing.best).toBeLessThanOrEqual((23.5 * 3600) / 2);
  expect(spacing.best).toBeGreaterThanOrEqual((23.5 * 3600 - 30) / 2);
  stop.abort();
  await running;
});

it("The time to the next deadline falls without a pass, and an earlier notice shortens it", async () => {
  const world = new ModelWorld();
  for (const name of ["n0", "n1"]) world.addNode(name, "a");
  spotPolicy(world, { lifetime: { max: "24h", reserve: "30m" } });
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(30));
  const left = () => world.gauges.get("lastcall_next_deadline_seconds");
  const limit = 23.5 * 3600;
  expect(left()).toEqual([{ labels: { policy: "spot" }, value: limit - 30 }]);
  await world.pass(seconds(60));
  expect(left()).toEqual([{ labels: { policy: "spot" }, value: limit - 90 }]);
  const { uid = "" } = world.get(`${nodes}/n1`)?.metadata ?? {};
  const [noticedAt, deadlineAt] = [0, 600].map((after) =>
    formatInstant(plus(world.clock.now(), seconds(after))),
  );
  world.create(departures, {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure", metadata: { name: "n1-notice" } },
    spec: {
      node: { name: "n1", uid },
      cause: "SpotInterruption",
      noticedAt,
      deadlineAt,
      policy: "spot",
    },
  });
  await world.pass(seconds(1));
  expect(left()).toEqual([{ labels: { policy: "spot" }, value: 599 }]);
  stop.abort();
  await running;
});

it("A replica that is no longer the leader exports no gauges of the fleet", async () => {
  const world = new ModelWorld();
  world.addNode("n0", "a");
  spotPolicy(world, { lifetime: { max: "24h" } });
  const lead = new AbortController();
  const running = world.startController(lead.signal);
  await world.pass(seconds(30));
  const shown = () => [...world.gauges.values()].flat();
  expect(shown()).not.toEqual([]);
  lead.abort();
  await running;
  expect(shown()).toEqual([]);
});
