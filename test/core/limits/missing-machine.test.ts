import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { missingMachines } from "../../../src/core/limits/missing-machine.ts";
import type { Policy } from "../../../src/core/policy/policy.ts";
import { hours, type Instant, minutes, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";

const longAgo = at("2026-11-18T00:00:00Z");
const now = at("2026-11-20T12:00:00Z");
const minutesAgo = (count: number): Instant => plus(now, minutes(-count));

type Over = Parameters<typeof aDeparture>[1];

/** The departure of a node that started and released its machine, and ended so long ago. */
function left(name: string, agoMinutes: number, over: Over = {}): Departure {
  const endedAt = minutesAgo(agoMinutes);
  const startedAt = plus(endedAt, minutes(-5));
  return aDeparture(aNode(name), {
    createdAt: longAgo,
    ...over,
    status: { phase: "Ended", outcome: "Planned", startedAt, endedAt, ...over.status },
  });
}

interface Fleet {
  readonly policies?: readonly Policy[];
  readonly nodes?: readonly NodeFacts[];
  readonly unowned?: readonly NodeFacts[];
  readonly departures: readonly Departure[];
}

/** The names of the nodes whose machines are missing, by policy. */
function missingIn({ policies = [aPolicy()], nodes = [], unowned = [], departures }: Fleet) {
  const byPolicy = new Map([
    ["spot", nodes],
    [undefined, unowned],
  ]);
  const found = missingMachines({ policies, nodes: byPolicy, departures, at: now });
  const namesOf = (policy: string) =>
    (found.get(policy) ?? []).map(({ departure }) => departure.node.name);
  return Object.fromEntries(policies.map(({ name }) => [name, namesOf(name)]));
}

const released = { instance: { ...aPolicy().instance, release: "Recreate" } } as const;

describe("a machine that has left", () => {
  it("is missing until a node has come after the start of its departure", () => {
    const departures = [left("n1", 60)];
    const before = aNode("n2", { createdAt: minutesAgo(66) });
    const after = aNode("n3", { createdAt: minutesAgo(64) });
    expect(missingIn({ nodes: [before], departures })).toEqual({ spot: ["n1"] });
    expect(missingIn({ nodes: [before, after], departures })).toEqual({ spot: [] });
  });

  it("is not replaced by a Node of a machine that was there, registered again", () => {
    const departures = [left("n1", 60)];
    const again = aNode("n2", { createdAt: minutesAgo(30), instanceBornAt: minutesAgo(600) });
    expect(missingIn({ nodes: [again], departures })).toEqual({ spot: ["n1"] });
    const fresh = { ...again, instanceBornAt: minutesAgo(32) };
    expect(missingIn({ nodes: [fresh], departures })).toEqual({ spot: [] });
  });

  it("is not replaced by one that was registered again just after it had come", () => {
    const first = { nodeCreatedAt: minutesAgo(67) };
    const noticed = left("n2", 50, { status: { outcome: "Cancelled", ...first } as never });
    const before = { ...noticed, node: { ...noticed.node, bootID: "boot-2" } };
    const born = { createdAt: minutesAgo(58), instanceBornAt: minutesAgo(68) };
    const again = aNode("n2", { uid: "n2-2", bootID: "boot-2", ...born });
    const departures = [left("n1", 55), before];
    expect(missingIn({ nodes: [again], departures })).toEqual({ spot: ["n1"] });
  });

  it("is there if its Node is registered again, whatever became of the one before", () => {
    const lost = left("n1", 20, { status: { outcome: "Cancelled", reason: "NodeGone" } as never });
    const before = { ...lost, node: { ...lost.node, bootID: "boot-1" } };
    const again = aNode("n1", { uid: "n1-2", bootID: "boot-1", createdAt: longAgo });
    expect(missingIn({ nodes: [again], departures: [before] })).toEqual({ spot: [] });
  });

  it("is not replaced by one that was registered again and has left since", () => {
    const boot = (one: Departure) => ({ ...one, node: { ...one.node, bootID: "boot-2" } });
    const before = boot(left("n2", 50, { status: { outcome: "Cancelled" }, createdAt: longAgo }));
    const again = boot(left("n3", 10, { createdAt: minutesAgo(45) }));
    const departures = [left("n1", 60), before, again];
    expect(missingIn({ departures })).toEqual({ spot: ["n1", "n3"] });
  });

  it("is not replaced by itself, nor counted twice, if a person has requested its departure", () => {
    const status = { nodeCreatedAt: longAgo };
    const planned = left("n1", 60, { status });
    const booted = { ...planned, node: { ...planned.node, bootID: "boot-1" } };
    // A person names only the node and its uid.
    const node = { ...planned.node, bootID: undefined };
    const asked = { ...left("n1", 60, { cause: "Manual", createdAt: minutesAgo(62) }), node };
    const over = { ...asked.status, startedAt: undefined };
    for (const reason of ["PlanChanged", "NodeGone"] as const) {
      const second = { ...asked, status: { ...over, outcome: "Cancelled", reason } as const };
      expect(missingIn({ departures: [booted, second] })).toEqual({ spot: ["n1"] });
    }
  });

  it("was released by us if a notice came only then", () => {
    const policies = [aPolicy(released)];
    const noticed = { cause: "SpotInterruption", noticedAt: minutesAgo(121) } as const;
    const machine = { id: "id-1", mode: "Recreate", providerID: undefined } as const;
    const missing = (event: string, ...steps: readonly string[]) => {
      const result = `${event}: n1 leaves.`;
      const timeline = steps.map((step) => ({ at: minutesAgo(121), step, result }));
      const departures = [left("n1", 120, { ...noticed, status: { machine, timeline } as never })];
      return missingIn({ policies, departures }).spot;
    };
    expect(missing("Due", "Preparing", "Releasing", "Noticed")).toEqual(["n1"]);
    expect(missing("Due", "Preparing", "Noticed", "Releasing")).toEqual([]);
    // The second of two notices.
    expect(missing("Noticed", "Preparing", "Releasing", "Noticed")).toEqual([]);
  });

  it("is replaced by a node of no policy, but that node replaces one machine only", () => {
    const unowned = [aNode("x1", { createdAt: minutesAgo(5) })];
    const departures = [left("n1", 60), left("n2", 30)];
    expect(missingIn({ unowned, departures })).toEqual({ spot: ["n2"] });
  });

  it("is not replaced by the node that took the place of another one while it drained", () => {
    const policies = [aPolicy(released)];
    const status = { startedAt: minutesAgo(125) };
    const long = left("n1", 1, { status });
    const preempted = left("n2", 66, { cause: "SpotInterruption" });
    const nodes = [aNode("n2", { uid: "n2-2", createdAt: minutesAgo(65) })];
    expect(missingIn({ policies, nodes, departures: [long, preempted] })).toEqual({ spot: ["n1"] });
    // One that came before the other was taken is its own: it was reserved for it.
    const reserved = aNode("n3", { createdAt: minutesAgo(120) });
    const both = [reserved, ...nodes];
    expect(missingIn({ policies, nodes: both, departures: [long, preempted] }).spot).toEqual([]);
  });

  it("is replaced by the node that bears its name, though another machine was gone before", () => {
    const nodes = [aNode("n2", { uid: "n2-2", createdAt: minutesAgo(5) })];
    const departures = [left("n1", 60), left("n2", 30)];
    expect(missingIn({ nodes, departures })).toEqual({ spot: ["n1"] });
    // Where machines have new names, the first one is replaced first.
    const fresh = [aNode("n3", { createdAt: minutesAgo(5) })];
    expect(missingIn({ nodes: fresh, departures })).toEqual({ spot: ["n2"] });
  });

  describe("beside a node that another tool has removed", () => {
    const status = { outcome: "Cancelled", reason: "PlanChanged", leftTo: "Karpenter" } as const;
    const removed = (agoMinutes: number): Departure =>
      left("n2", agoMinutes, { status: { ...status, startedAt: undefined } });
    const back = (name: string) => aNode(name, { uid: "new", createdAt: minutesAgo(25) });

    it("is not replaced by the machine that comes back for that node, and only it is missing", () => {
      const departures = [left("n1", 30), removed(28)];
      expect(missingIn({ nodes: [back("n2")], departures })).toEqual({ spot: ["n1"] });
      expect(missingIn({ nodes: [back("n1")], departures })).toEqual({ spot: [] });
    });

    it("is replaced by any other one: most of what such a tool removes does not come back", () => {
      const departures = [left("n1", 30), removed(40)];
      expect(missingIn({ nodes: [back("n3")], departures })).toEqual({ spot: [] });
    });

    it("is replaced by one that bears its name an hour later, or if the node is still there", () => {
      const departures = [left("n1", 30), removed(90)];
      expect(missingIn({ nodes: [back("n2")], departures })).toEqual({ spot: [] });
      const there = aNode("n2", { createdAt: longAgo });
      const nodes = [there, back("n2")];
      expect(missingIn({ nodes, departures: [left("n1", 30), removed(28)] }).spot).toEqual([]);
    });

    it("is missing once, if it was also requested to leave when the tool removed it", () => {
      const node = aNode("n2", { bootID: "boot-2" });
      const taken = left("n2", 28, { node, status: { outcome: "Preempted" } });
      const request = { ...removed(28), node, name: "n2-asked", uid: "other" };
      for (const departures of [
        [taken, request],
        [request, taken],
      ]) {
        expect(missingIn({ departures }).spot).toEqual(["n2"]);
        expect(missingIn({ nodes: [back("n2")], departures }).spot).toEqual([]);
      }
    });
  });

  it("leaves its place from its notice on, also if nobody acted on that for hours", () => {
    const policies = [aPolicy(released)];
    const long = left("n1", 1, { status: { startedAt: minutesAgo(240) } });
    const noticed = { cause: "SpotInterruption", noticedAt: minutesAgo(145) } as const;
    const nodes = [aNode("n2", { uid: "n2-2", createdAt: minutesAgo(143) })];
    const departures = [long, left("n2", 6, noticed)];
    expect(missingIn({ policies, nodes, departures }).spot).toEqual(["n1"]);
  });

  it("no longer takes the nodes that come once it is not expected back", () => {
    const policies = [aPolicy(released)];
    const departures = [left("n1", 10), left("n2", 80, { cause: "SpotInterruption" })];
    const nodes = [aNode("n3", { createdAt: minutesAgo(8) })];
    expect(missingIn({ policies, nodes, departures })).toEqual({ spot: [] });
  });

  it("is not missing if another machine has taken its Node object over", () => {
    const nodes = [aNode("n1", { bootID: "boot-2" })];
    expect(missingIn({ nodes, departures: [left("n1", 60)] })).toEqual({ spot: [] });
  });

  it("was replaced if its replacement has come and left since", () => {
    const heir = left("n2", 10, { createdAt: minutesAgo(58) });
    // The last one is the replacement of the second.
    const nodes = [aNode("n3", { createdAt: minutesAgo(8) })];
    const departures = [left("n1", 60), heir];
    expect(missingIn({ nodes, departures })).toEqual({ spot: [] });
    expect(missingIn({ departures })).toEqual({ spot: ["n2"] });
  });

  it("is not replaced by a node that was there before, whenever it was asked to leave", () => {
    const cause = "Manual";
    const heir = left("n2", 10, { cause, createdAt: minutesAgo(58) });
    const status = { ...heir.status, nodeCreatedAt: longAgo };
    expect(missingIn({ departures: [left("n1", 60), { ...heir, status }] })).toEqual({
      spot: ["n1", "n2"],
    });
  });

  it.each([
    ["released to its group", "Recreate", {}, 24 * 60],
    ["released for Karpenter", "NodeClaim", {}, 60],
    ["deleted without its group", "DeleteInstance", {}, 60],
    ["deleted with its place in the group", "Delete", {}, 0],
    ["taken by the cloud", "Recreate", { cause: "SpotInterruption" }, 60],
    ["taken by the cloud in mid-departure", "Recreate", { noticedAt: minutesAgo(70) }, 60],
  ] as const)(
    "is expected back for a time that depends on how it left: %s",
    (_, release, over, most) => {
      const policies = [aPolicy({ instance: { ...released.instance, release } })];
      const isMissing = (ago: number) =>
        missingIn({ policies, departures: [left("n1", ago, over)] }).spot?.length === 1;
      expect(isMissing(most)).toBe(false);
      if (most > 0) expect(isMissing(most - 1)).toBe(true);
    },
  );

  it("is expected back for as long as its policy says", () => {
    const policies = [
      aPolicy({ replacement: { ...aPolicy().replacement, expectForMs: hours(2) } }),
    ];
    expect(missingIn({ policies, departures: [left("n1", 119)] })).toEqual({ spot: ["n1"] });
    expect(missingIn({ policies, departures: [left("n1", 120)] })).toEqual({ spot: [] });
  });

  it.each(["RolledBack", "Cancelled", "Failed"] as const)(
    "is none if the departure ended as %s: the machine stayed",
    (outcome) => {
      expect(missingIn({ departures: [left("n1", 10, { status: { outcome } })] })).toEqual({
        spot: [],
      });
    },
  );

  it("counts once, however many departures its node had", () => {
    const departures = [left("n1", 10), left("n1", 10, { name: "n1-2", uid: "other" })];
    expect(missingIn({ departures }).spot).toHaveLength(1);
  });

  it("is not replaced by its own node, which was also requested to leave, without its boot", () => {
    const node = aNode("n1", { bootID: "boot-1" });
    const request = left("n1", 10, {
      ...{ name: "n1-asked", uid: "other", cause: "Manual", createdAt: minutesAgo(12) },
      node: { name: "n1", uid: node.uid, providerID: node.providerID },
      status: { outcome: "Cancelled" },
    });
    const planned = left("n1", 10, { node });
    expect(missingIn({ departures: [planned, request] })).toEqual({ spot: ["n1"] });
    const took = { ...request, status: { ...request.status, outcome: "Planned" } } as const;
    expect(missingIn({ departures: [planned, took] }).spot).toHaveLength(1);
  });

  it("counts for the policy that has taken its own one over", () => {
    const policies = [aPolicy(), aPolicy({ name: "spot-2", weight: 10 })];
    const departures = [left("n1", 5)];
    const nodes = [aNode("n2", { createdAt: longAgo })];
    const found = (mine: readonly NodeFacts[], its: readonly NodeFacts[]) => {
      const byPolicy = new Map([
        ["spot", mine],
        ["spot-2", its],
      ]);
      const all = missingMachines({ policies, nodes: byPolicy, departures, at: now });
      return [...all].map(([name, missing]) => [name, missing.length]);
    };
    expect(found([], nodes)).toEqual([["spot-2", 1]]);
    // Each of two policies that both have nodes counts its own.
    expect(found([aNode("n3", { createdAt: longAgo })], nodes)).toEqual([["spot", 1]]);
    // It is replaced by a node of the new one.
    const back = aNode("n1", { uid: "n1-2", createdAt: minutesAgo(2) });
    expect(found([], [...nodes, back])).toEqual([["spot-2", 0]]);
  });

  it("counts for an hour for every policy if its own one is deleted and we released it", () => {
    const policies = [aPolicy({ ...released, name: "other" })];
    const nodes = new Map([["other", [aNode("n2", { createdAt: longAgo })]]]);
    const found = (departures: readonly Departure[]) =>
      missingMachines({ policies, nodes, departures, at: now }).get("other")?.length ?? 0;
    expect(found([left("n1", 59)])).toBe(1);
    expect(found([left("n1", 61)])).toBe(0);
    expect(found([left("n1", 5, { cause: "SpotInterruption" })])).toBe(0);
  });

  it("is looked for in its own policy", () => {
    const policies = [aPolicy(), aPolicy({ name: "other" })];
    const departures = [left("n1", 10), left("n2", 10, { policy: "other" })];
    expect(missingIn({ policies, departures })).toEqual({ spot: ["n1"], other: ["n2"] });
  });
});
