import { describe, expect, it } from "vitest";
import { next } from "../../src/core/next/next.ts";
import { isLongRun } from "../support/long-run.ts";
import { departureSpace } from "./departure-space.ts";
import { explore } from "./state-space.ts";

const worlds = [
  { pods: 0, kills: 1, losses: 1 },
  { pods: 1, kills: 0, losses: 1 },
  { pods: 1, kills: 1, losses: 0 },
  ...(isLongRun ? [{ pods: 1, kills: 1, losses: 1 }] : []),
];

const noticed = [
  { pods: 0, kills: 0, losses: 0, notices: 1, refusals: 1 },
  { pods: 1, kills: 0, losses: 0, notices: 1, refusals: 0 },
  ...(isLongRun ? ([{ pods: 1, kills: 0, losses: 0, notices: 1, refusals: 1 }] as const) : []),
] as const;

describe("every order of events in a departure", () => {
  const longMs = 300_000;

  it.each(worlds)(
    "keeps the rules: $pods pods, $kills kills, $losses losses",
    {
      timeout: longMs,
    },
    (limits) => {
      const { states, transitions, ends, found } = explore(departureSpace(limits));
      console.log(`${states} states, ${transitions} transitions, ${ends} ends`);
      expect(found).toBeUndefined();
      expect(ends).toBeGreaterThan(0);
    },
  );

  it.each(noticed)(
    "keeps them with a notice at any moment: $pods pods, $refusals refusals",
    { timeout: longMs },
    (limits) => {
      const { states, transitions, ends, found } = explore(departureSpace(limits));
      console.log(`${states} states, ${transitions} transitions, ${ends} ends`);
      expect(found).toBeUndefined();
      expect(ends).toBeGreaterThan(0);
    },
  );

  it("shows the shortest way to a pod that nobody asks to leave, if none is evicted", () => {
    const { found } = explore(
      departureSpace({
        ...{ pods: 1, kills: 0, losses: 0, notices: 1 },
        next: (...args) => {
          const out = next(...args);
          return { ...out, requests: out.requests.filter(({ kind }) => kind !== "Pod") };
        },
      }),
    );
    expect(found?.rule).toBe("the cloud takes a machine with a pod that nobody asked to leave");
    expect(found?.path).toContain("a notice comes");
  });

  it("shows the shortest way to a node that is never given back, if nothing uncordons it", () => {
    const { found } = explore(
      departureSpace({
        ...{ pods: 0, kills: 0, losses: 1 },
        next: (...args) => {
          const out = next(...args);
          return { ...out, requests: out.requests.filter(({ kind }) => kind !== "Uncordon") };
        },
      }),
    );
    expect(found?.rule).toBe("nothing will ever happen again");
    expect(found?.path).toContain("RollingBack is written");
  });

  it("shows the shortest way to a pod that ends with its machine, if nobody looks again", () => {
    const { found } = explore(
      departureSpace({
        ...{ pods: 1, kills: 0, losses: 0 },
        next: (scene, memory, now) => {
          const { pods: _, ...facts } = scene.facts;
          const none = { kind: "Known" as const, value: [], number: now.number };
          const blind = { ...facts, pods: none };
          return next({ ...scene, facts: blind, lastLook: undefined }, memory, now);
        },
      }),
    );
    expect(found?.rule).toBe("a machine is released with a pod on it");
  });
});
