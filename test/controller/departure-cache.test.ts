import { describe, expect, it } from "vitest";
import type { DepartureStore, Fleet, StoreResult } from "../../src/contracts/cluster.ts";
import { DepartureCache } from "../../src/controller/departure-cache.ts";
import type { Departure } from "../../src/core/departure/departure.ts";
import { millis } from "../../src/core/time/time.ts";
import { aDeparture, aNode } from "../core/fleet-builder.ts";

const node = aNode("n1");
const version = (resourceVersion: string, over: Partial<Departure> = {}): Departure => ({
  ...aDeparture(node, { name: "d1", uid: "uid-1" }),
  ...over,
  resourceVersion,
});

/** A cache over a watch that shows one Departure, if any; the store answers as told. */
function stage(first: Departure | undefined) {
  let shown = first;
  const all = () => (shown === undefined ? [] : [shown]);
  const none = { nodes: [], policies: [], badPolicies: [] };
  let view = { ...none, departures: all() };
  const fleet: Partial<Fleet> = {
    view: () => view,
    departure: (uid) => all().find((one) => one.uid === uid),
    departuresOf: all,
    departureNamed: () => shown,
    silences: () => [{ kind: "departures", ms: millis(nowMs - heardMs) }],
  };
  let nowMs = 0;
  let heardMs = 0;
  const cache = new DepartureCache(fleet as Fleet, { monotonic: () => nowMs });
  const passHours = (count: number, { heard = true } = {}) => {
    nowMs += count * 3_600_000;
    if (heard) heardMs = nowMs;
  };
  const answer = async (result: StoreResult, to = version("5")) => {
    const store: Partial<DepartureStore> = { move: async () => result };
    return cache.storing(store as DepartureStore).move(to, { departAt: undefined } as never);
  };
  const show = (next: Departure | undefined) => {
    shown = next;
    view = { ...none, departures: all() };
  };
  const versions = () => {
    const found = cache.fleet;
    const ways = [found.view().departures, found.departuresOf(node.uid)];
    const single = [found.departure("uid-1"), found.departureNamed("d1")];
    const lists = [...ways, ...single.map((one) => (one === undefined ? [] : [one]))];
    const seen = lists.map((some) => some.map((one) => one.resourceVersion).join());
    expect(new Set(seen).size).toBe(1);
    return seen[0];
  };
  return { answer, show, versions, cache, passHours };
}

describe("a Departure that an answer has shown", () => {
  it("counts until the watch shows as much", async () => {
    const { answer, show, versions } = stage(version("9"));
    await answer({ kind: "Done", departure: version("12") });
    expect(versions()).toBe("12");
    show(version("10"));
    expect(versions()).toBe("12");
    show(version("13"));
    expect(versions()).toBe("13");
  });

  it("counts for an hour at most: after a restore of etcd the watch would never show as much", async () => {
    const { answer, show, versions, passHours } = stage(version("9"));
    await answer({ kind: "Done", departure: version("12") });
    show(version("3"));
    passHours(0.9);
    expect(versions()).toBe("12");
    passHours(0.2);
    expect(versions()).toBe("3");
  });

  it("counts for as long as the watch receives nothing: what that shows is older", async () => {
    const { answer, versions, passHours } = stage(version("9"));
    await answer({ kind: "Done", departure: version("12") });
    passHours(5, { heard: false });
    expect(versions()).toBe("12");
    passHours(0);
    expect(versions()).toBe("9");
  });

  it.each([
    ["is older than what the watch shows", "8"],
    ["has a version of which nobody knows the order", "x12"],
  ])("does not count if it %s", async (_, older) => {
    const { answer, versions } = stage(version("9"));
    await answer({ kind: "Done", departure: version(older) });
    expect(versions()).toBe("9");
  });

  it("does not count if the watch shows none: it may have been deleted since", async () => {
    const { answer, show, versions } = stage(undefined);
    await answer({ kind: "Done", departure: version("12") });
    expect(versions()).toBe("");
    show(version("9"));
    await answer({ kind: "Done", departure: version("12") });
    show(undefined);
    expect(versions()).toBe("");
  });

  it("is not gone because an answer says so, which may come from something in between", async () => {
    const { answer, versions, cache } = stage(version("9"));
    await answer({ kind: "Done", departure: version("12") });
    await answer({ kind: "Gone" });
    expect(versions()).toBe("12");
    const store: Partial<DepartureStore> = { read: async () => ({ kind: "Gone" }) };
    await cache.storing(store as DepartureStore).read("d1");
    expect(versions()).toBe("12");
  });
});

describe("a conflict", () => {
  const conflict = { kind: "Conflict", message: "not this object" } as const;

  it("comes with what the watch shows, if that is newer than what was written", async () => {
    const { answer } = stage(version("9"));
    expect(await answer(conflict, version("5"))).toEqual({ ...conflict, newer: version("9") });
    expect(await answer(conflict, version("9"))).toEqual(conflict);
    expect(await answer(conflict, version("10"))).toEqual(conflict);
  });

  it("comes alone if another Departure has the name by now, or none", async () => {
    const { answer, show } = stage(version("9", { uid: "uid-2" }));
    expect(await answer(conflict, version("5"))).toEqual(conflict);
    show(undefined);
    expect(await answer(conflict, version("5"))).toEqual(conflict);
  });
});

it("without any answers, the view is the watch's own", () => {
  const { cache } = stage(version("9"));
  expect(cache.fleet.view()).toBe(cache.fleet.view());
});
