import { expect, it } from "vitest";
import { hours, instant, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { neverPreempted, type PreemptionModel } from "../../../src/sim/cloud/model-machine.ts";
import { podBehaviour } from "../../../src/sim/cluster-controllers/kubelet.ts";
import { FleetTally } from "../../../src/sim/demo/simulation-report.ts";
import { startModelCluster } from "../../../src/sim/model-cluster.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";

const group = { name: "spot", zone: "z", price: "Preemptible" } as const;

function startFleet(size: number, preemptions: PreemptionModel = neverPreempted) {
  const clock = new VirtualClock({ startAt: instant(0), settle: eventLoopTurn });
  const groups = [{ ...group, size }];
  const cluster = startModelCluster({ clock, seed: 1, preemptions, groups });
  const names = cluster.cloud.machines().map(({ name }) => name);
  return { clock, cluster, names, tally: new FleetTally(cluster) };
}

type Fleet = ReturnType<typeof startFleet>;

/** Creates a pod without an owner that asks for `grace` seconds and terminates within `exits`. */
function runPod({ cluster }: Fleet, at: { node: string; grace: number; exits: string }): string {
  const name = `pod-${at.grace}-${at.exits}`;
  const annotations = { [podBehaviour.exitSeconds]: at.exits };
  const containers = [{ name: "main", image: "x" }];
  const spec = { nodeName: at.node, terminationGracePeriodSeconds: at.grace, containers };
  const body = { metadata: { name, annotations }, spec };
  const path = "/api/v1/namespaces/default/pods";
  expect(cluster.api.handle({ method: "POST", path, body }).status).toBe(201);
  return name;
}

it.each([
  // The kubelet grants a pod 15 s when its machine is taken.
  { what: "asks for no more than is granted", grace: 15, exits: "10", cut: 0, lost: 0 },
  { what: "asks for more but is done in time", grace: 60, exits: "10", cut: 1, lost: 0 },
  { what: "asks for more and needs it", grace: 60, exits: "20", cut: 1, lost: 1 },
  { what: "never exits on its own", grace: 10, exits: "never", cut: 0, lost: 1 },
])("A pod on a taken machine that $what: cut $cut, lost $lost", async (row) => {
  const fleet = startFleet(1);
  const node = fleet.names[0] ?? "";
  runPod(fleet, { node, ...row });
  await fleet.clock.advance(seconds(10));
  fleet.cluster.cloud.preempt(node);
  await fleet.clock.advance(minutes(2));
  expect(fleet.tally.counts()).toMatchObject({
    ...{ preempted: 1, replacements: 1, largestLossIn60s: 1 },
    ...{ podsCut: row.cut, podsLost: row.lost },
  });
});

it.each([
  { what: "asks for no more than is granted", grace: 15, exits: "10", cut: 0, lost: 0 },
  { what: "asks for more but is done in time", grace: 60, exits: "10", cut: 1, lost: 0 },
  { what: "asks for more and needs it", grace: 60, exits: "20", cut: 1, lost: 1 },
  { what: "never exits on its own", grace: 10, exits: "never", cut: 0, lost: 1 },
])(
  "An eviction after the preemption does not help a pod that $what: cut $cut, lost $lost",
  async (row) => {
    const fleet = startFleet(1);
    const node = fleet.names[0] ?? "";
    const name = runPod(fleet, { node, ...row });
    await fleet.clock.advance(seconds(10));
    fleet.cluster.cloud.preempt(node);
    await fleet.clock.advance(seconds(1));
    const path = `/api/v1/namespaces/default/pods/${name}`;
    expect(fleet.cluster.api.handle({ method: "DELETE", path }).status).toBe(200);
    await fleet.clock.advance(minutes(2));
    expect(fleet.tally.counts()).toMatchObject({ podsCut: row.cut, podsLost: row.lost });
  },
);

it.each([
  { what: "with its full grace", grace: 60, given: undefined, exits: "20", cut: 0, lost: 0 },
  { what: "with less than it requests", grace: 60, given: 30, exits: "20", cut: 1, lost: 0 },
  { what: "with less than it needs", grace: 60, given: 10, exits: "20", cut: 1, lost: 1 },
])("A pod that is evicted $what: cut $cut, lost $lost", async (row) => {
  const fleet = startFleet(1);
  const name = runPod(fleet, { node: fleet.names[0] ?? "", ...row });
  await fleet.clock.advance(seconds(10));
  const path = `/api/v1/namespaces/default/pods/${name}/eviction`;
  const deleteOptions = row.given === undefined ? {} : { gracePeriodSeconds: row.given };
  const body = { metadata: { name }, deleteOptions };
  expect(fleet.cluster.api.handle({ method: "POST", path, body }).status).toBe(201);
  await fleet.clock.advance(minutes(2));
  expect(fleet.tally.counts()).toMatchObject({ podsCut: row.cut, podsLost: row.lost });
});

it("The largest loss counts the machines that the cloud takes within one minute", async () => {
  const fleet = startFleet(4);
  const take = async (index: number, thenSeconds: number): Promise<void> => {
    fleet.cluster.cloud.preempt(fleet.names[index] ?? "");
    await fleet.clock.advance(seconds(thenSeconds));
  };
  // At 0, 40, 59.5 and 101 s: three of them within one minute, then two.
  await take(0, 40);
  await take(1, 19.5);
  await take(2, 41.5);
  await take(3, 1);
  expect(fleet.tally.counts()).toMatchObject({
    preempted: 4,
    largestLossIn60s: 3,
    largestLossIn1h: 4,
  });
});

it.each([
  ["at their 24 hours", "Limit", 2],
  ["before their time", "Preempted", 0],
] as const)(
  "Of machines that the cloud takes %s, it counts %s: %i",
  async (_, because, atLimit) => {
    const endOf = (_slot: string, bornAt: number) =>
      bornAt === 0 ? { at: plus(instant(0), hours(24)), because } : ("Never" as const);
    const fleet = startFleet(2, { endOf });
    await fleet.clock.advance(hours(25));
    expect(fleet.tally.counts()).toMatchObject({ preempted: 2, preemptedAtLimit: atLimit });
  },
);
