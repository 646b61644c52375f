import { describe, expect, it } from "vitest";
import { drainAnswered, drainStep } from "../../src/core/drain/drain-memory.ts";
import { drainSpace } from "./drain-space.ts";
import { explore } from "./state-space.ts";

describe("every order of events in a drain", () => {
  it.each([
    { pods: 1, kills: 1, losses: 1, allowed: 0 },
    { pods: 1, kills: 2, losses: 1, allowed: 1 },
    { pods: 2, kills: 0, losses: 1, allowed: 2 },
    { pods: 3, kills: 0, losses: 0, allowed: 3 },
  ])("keeps the rules: $pods pods, $kills kills, $losses lost answers", (limits) => {
    const { states, transitions, ends, found } = explore(drainSpace(limits));
    console.log(`${states} states, ${transitions} transitions, ${ends} ends`);
    expect(found).toBeUndefined();
    expect(ends).toBeGreaterThan(0);
  });

  it("shows the shortest way to a pod that is left, if a lost answer counts as gone", () => {
    const answered: typeof drainAnswered = (memory, act, about) => {
      const isLost = about.answer.kind === "NoAnswer";
      return drainAnswered(memory, act, isLost ? { ...about, answer: { kind: "Gone" } } : about);
    };
    const { found } = explore(drainSpace({ pods: 1, kills: 0, losses: 1, allowed: 1, answered }));
    expect(found).toEqual({
      rule: "the drain is done, and a pod is still there",
      path: ["Evict p0 is lost on its way"],
    });
  });

  it("shows the shortest way to a second request, if requests under way are forgotten", () => {
    const { found } = explore(
      drainSpace({
        ...{ pods: 2, kills: 0, losses: 0, allowed: 1 },
        step: (memory, view) => {
          const known = Object.entries(memory.progress).filter(
            ([, { kind }]) => kind !== "InFlight",
          );
          return drainStep({ ...memory, progress: Object.fromEntries(known) }, view);
        },
      }),
    );
    expect(found?.rule).toBe("a pod has two requests under way");
    expect(found?.path).toHaveLength(2);
  });
});
