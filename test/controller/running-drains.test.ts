import { describe, expect, it } from "vitest";
import { RunningDrains } from "../../src/controller/departure/step.ts";
import { aDeparture, aNode } from "../core/fleet-builder.ts";

/** A drain with this many pods in each budget, of which each allows one disruption. */
function asking(pods: number) {
  return {
    demands: ["shop/web", "shop/cache"].map((budget) => ({ budget, pods, disruptionsAllowed: 1 })),
  };
}

function draining(name: string) {
  return aDeparture(aNode(name), { status: { phase: "Draining", ...asking(1) } });
}

describe("running drains", () => {
  const [gone, next] = [draining("n1"), draining("n2")];

  it("keep their first demands as long as their Departures exist", () => {
    const drains = new RunningDrains();
    const fresh = { ...gone, status: { ...gone.status, demands: undefined } };
    expect(drains.enter(fresh, asking(1))).toEqual(asking(1).demands);
    drains.forget([fresh]);
    expect(drains.enter(fresh, asking(2))).toEqual(asking(1).demands);
    drains.forget([next]);
    expect(drains.enter(fresh, asking(2))).toEqual(asking(2).demands);
  });

  it("count as over before the watch shows it, and are forgotten with their Departures", () => {
    const drains = new RunningDrains();
    const conflict = () => drains.conflictOf(next, asking(1), [gone, next]);
    expect(conflict()).toBe("n1-1, over shop/web and shop/cache");
    drains.leave(gone);
    expect(conflict()).toBeUndefined();
    drains.forget([next]);
    expect(conflict()).toBe("n1-1, over shop/web and shop/cache");
  });
});
