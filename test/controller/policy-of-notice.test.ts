import { describe, expect, it } from "vitest";
import { fieldsOf } from "../../src/core/json/json-field.ts";
import { minutes, seconds } from "../../src/core/time/time.ts";
import { ModelWorld, nodes, policies, spotPolicy, webWorkload } from "../support/model-world.ts";

/** A notice for n1, whose policy plans no departures: there was no Departure that names it. */
async function noticed(policy: object, then: (world: ModelWorld) => Promise<void>) {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  spotPolicy(world, { lifetime: {}, ...policy });
  const stop = new AbortController();
  const running = world.startController(stop.signal);
  await world.pass(seconds(10));
  world.notice("n1", seconds(120));
  await world.pass(seconds(1));
  await then(world);
  stop.abort();
  await running;
}

const departuresOf = (world: ModelWorld): unknown =>
  fieldsOf(world.get(`${policies}/spot`)?.status).departures;

const countedAs = (world: ModelWorld): readonly string[] =>
  world.counted.filter((one) => /departures_total|pods_(killed|lost)/.test(one));

describe("a departure that a notice made", () => {
  it("belongs to the policy of its node, in the metrics and in the policy's status", async () => {
    await noticed({}, async (world) => {
      await world.passUntil(() => world.statusOf("n1").phase === "Releasing", minutes(1));
      await world.pass(seconds(2));
      expect(world.statusOf("n1")).toMatchObject({ policy: "spot" });
      expect(world.gauges.get("lastcall_departures")).toEqual([
        { labels: { policy: "spot", phase: "Releasing" }, value: 1 },
      ]);
      const deadlines = world.gauges.get("lastcall_next_deadline_seconds");
      expect(deadlines?.map(({ labels }) => labels)).toEqual([{ policy: "spot" }]);
      expect(departuresOf(world)).toEqual({ scheduled: 0, underWay: 1, done24h: 0 });

      world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
      await world.pass(minutes(1));
      expect(countedAs(world)).toEqual([
        "lastcall_departures_total policy=spot cause=SpotInterruption outcome=Preempted",
      ]);
      expect(departuresOf(world)).toEqual({ scheduled: 0, underWay: 0, done24h: 1 });
      expect(world.gauges.get("lastcall_nodes_missing")).toEqual([
        { labels: { policy: "spot" }, value: 1 },
      ]);
    });
  });

  it.each([
    ["ignores", { onNotice: { spotInterruption: "Ignore" } }],
    ["is in dry run", { dryRun: true }],
  ])("belongs to its policy if that %s", async (_, policy) => {
    await noticed(policy, async (world) => {
      await world.pass(seconds(5));
      expect(world.statusOf("n1")).toMatchObject({ outcome: "Cancelled", policy: "spot" });
      expect(departuresOf(world)).toEqual({ scheduled: 0, underWay: 0, done24h: 1 });
    });
  });

  it("names no policy where none selects its node", async () => {
    const terms = [{ matchExpressions: [{ key: "pool", operator: "In", values: ["other"] }] }];
    await noticed({ nodeSelector: { nodeSelectorTerms: terms } }, async (world) => {
      await world.passUntil(() => world.statusOf("n1").phase === "Releasing", minutes(1));
      expect(world.statusOf("n1")).not.toHaveProperty("policy");
    });
  });
});
