import { describe, expect, it } from "vitest";
import { RunningDrains } from "../../src/controller/departure/step.ts";
import { aDeparture, aNode } from "../core/fleet-builder.ts";

/** A drain of so many pods of each budget, of which each lets one go. */
function asking(pods: number) {
  return {
    demands: ["shop/web", "shop/cache"].map((budget) => ({ budget, pods, disruptionsAllowed: 1 })),
  };
}

function draining(name: string) {
  return aDeparture(aNode(name), { status: { phase: "Draining", ...asking(1) } });
}

describe("what is known of drains", () => {
  const [gone, next] = [draining("n1"), draining("n2")];

  it("is what they asked for at first, as long as their Departures are there", () => {
    const drains = new RunningDrains();
    const fresh = { ...gone, status: { ...gone.status, demands: undefined } };
    expect(drains.enter(fresh, asking(1))).toEqual(asking(1).demands);
    drains.forget([fresh]);
    expect(drains.enter(fresh, asking(2))).toEqual(asking(1).demands);
    drains.forget([next]);
    expect(drains.enter(fresh, asking(2))).toEqual(asking(2).demands);
  });

  it("is that they are over until the watch shows it, and no longer than they are there", () => {
    const drains = new RunningDrains();
    const conflict = () => drains.conflictOf(next, asking(1), [gone, next]);
    expect(conflict()).toBe("n1-1, over shop/web and shop/cache");
    drains.leave(gone);
    expect(conflict()).toBeUndefined();
    drains.forget([next]);
    expect(conflict()).toBe("n1-1, over shop/web and shop/cache");
  });
});
