import { expect, it } from "vitest";
import { orphanMachines } from "../../../src/cli/doctor/machine-facts.ts";
import type { InstanceReleaser } from "../../../src/contracts/cloud.ts";
import type { MachineState } from "../../../src/core/cluster/machine.ts";
import { hours, minus, minutes } from "../../../src/core/time/time.ts";
import { known, unknown } from "../../../src/doctor/facts.ts";
import { at, nodeOf } from "../../doctor/green-facts.ts";

const idOf = (name: string) => `gce://demo/a/${name}`;
const { signal } = new AbortController();
const present = (more: object = {}): MachineState =>
  ({
    ...{ kind: "Present", id: "1", bornAt: minus(at, hours(1)), running: true },
    ...more,
  }) as MachineState;

function orphansOf(machines: Readonly<Record<string, MachineState>>, asked: string[] = []) {
  const releaser = {
    describe: async (providerID: string) => machines[providerID.split("/").at(-1) ?? ""],
  } as unknown as InstanceReleaser;
  const state = known({ kind: "Present", running: true, launchKnown: true } as const);
  const machine = { cloud: "gcp", nodeReady: true, mode: "Recreate" } as const;
  const beside = ["n0", "n1"].map((node) => ({ ...machine, node, providerID: idOf(node), state }));
  const lost = { ...machine, node: "n2", providerID: idOf("n2"), state: unknown("no answer") };
  return orphanMachines(
    {
      beside: [...beside, lost],
      nodes: [
        nodeOf("n3", { ready: false, labels: {} }),
        ...["n0", "N1"].map((name) => nodeOf(name)),
        // Of a cloud that did not respond, of an unknown cloud, and of no cloud at all.
        ...["aws:///a/i-1", "kind://x", undefined].map((providerID) =>
          nodeOf("other", { providerID }),
        ),
      ],
    },
    {
      releaserFor: () => releaser,
      groupsOf: async (providerIDs) => {
        asked.push(...providerIDs);
        return ["n0", "n1", ...Object.keys(machines)].map(idOf);
      },
      io: { clock: { now: () => at } } as never,
    },
    signal,
  );
}

it.each<readonly [what: string, machine: MachineState, orphans: readonly string[]]>([
  ["one that has run for an hour without becoming a node", present(), [idOf("x")]],
  ["not one that is still starting", present({ bornAt: minus(at, minutes(14)) }), []],
  ["not one that is stopping", present({ running: false }), []],
  ["not one that is gone meanwhile", { kind: "Absent" }, []],
  ["not one of unknown age", present({ bornAt: undefined }), []],
])("of the machines without a node, doctor names %s", async (_, machine, orphans) => {
  expect(await orphansOf({ x: machine })).toEqual(orphans);
});

it("doctor reads the groups of all nodes, Ready first, and names at most ten orphans", async () => {
  const asked: string[] = [];
  const many = Array.from({ length: 25 }, (_, place) => [`x${place}`, present()] as const);
  expect(await orphansOf(Object.fromEntries(many), asked)).toHaveLength(10);
  expect(asked).toEqual([idOf("n0"), idOf("N1"), idOf("n3")]);
});
