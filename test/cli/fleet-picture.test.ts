import { expect, it } from "vitest";
import { FleetNews, fleetNodes } from "../../src/cli/demo/fleet-picture.ts";
import type { ModelMachine } from "../../src/sim/cloud/model-machine.ts";
import { aDeparture, aNode, at } from "../core/fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");

function machine(name: string, more: Partial<ModelMachine> = {}): ModelMachine {
  const group = { name: "spot", zone: "a", size: 3, price: "Preemptible" as const };
  return { id: name, name, group, bootID: "b", bornAt: now, state: "Running", ...more };
}

const inPhase = (name: string, phase: "Scheduled" | "Held" | "Draining" | "Releasing") =>
  aDeparture(aNode(name), { status: { phase } });

it("Each place in the fleet has its machine's state, and that of its twin, by name", () => {
  const machines = [
    machine("n10"),
    machine("n2"),
    machine("n3"),
    machine("n4"),
    machine("n5", { state: "Booting" }),
    machine("n6", { state: "Gone" }),
    machine("n7", { state: "Noticed", noticedAt: now }),
    machine("n8", { state: "Stopping", noticedAt: now }),
  ];
  const view = {
    nodes: machines.map(({ name }) => aNode(name)),
    departures: [
      inPhase("n10", "Scheduled"),
      inPhase("n2", "Held"),
      inPhase("n3", "Draining"),
      inPhase("n4", "Releasing"),
      // Its notice counts.
      inPhase("n7", "Draining"),
    ],
  };
  const twins = [machine("n2", { state: "Noticed", noticedAt: now }), machine("n3")];
  const nodes = fleetNodes({ machines, twins }, view);
  expect(nodes.map(({ name, doing, twin }) => [name, doing, twin?.doing])).toEqual([
    ["n2", "Working", "Taken"],
    ["n3", "Leaving", "Working"],
    ["n4", "Leaving", undefined],
    ["n5", "Booting", undefined],
    ["n6", "Gone", undefined],
    ["n7", "Taken", undefined],
    ["n8", "Taken", undefined],
    ["n10", "Working", undefined],
  ]);
});

it("A departure of an earlier machine of the name does not make the new one leave", () => {
  const departure = inPhase("n1", "Draining");
  const earlier = { ...departure, node: { ...departure.node, uid: "earlier" } };
  const [node] = fleetNodes(
    { machines: [machine("n1")], twins: [] },
    { nodes: [aNode("n1")], departures: [earlier] },
  );
  expect(node?.doing).toBe("Working");
});

it("Notices and ends of departures are events that the demo can skip to", () => {
  const news = new FleetNews();
  const ofKind = { kind: "Noticed", at: now, because: "Chance" } as const;
  news.seeCloud({ ...ofKind, machine: machine("n1") } as never, () => {});
  expect(news.count()).toBe(1);
  const ended = { phase: "Ended", outcome: "Planned", message: "n2 is drained." } as const;
  const departures = [
    aDeparture(aNode("n2"), { status: ended }),
    aDeparture(aNode("n3"), { status: { phase: "Draining", message: "n3 is draining." } }),
  ];
  news.seeDepartures(departures, now, () => {});
  expect(news.count()).toBe(2);
  news.seeDepartures(departures, now, () => {});
  expect(news.count()).toBe(2);
});
