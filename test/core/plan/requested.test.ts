import { describe, expect, it } from "vitest";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { clearOfRequests } from "../../../src/core/plan/policy-plan.ts";
import { earlyInstants, spacingOf } from "../../../src/core/plan/spacing/spacing.ts";
import { formatInstant, hours, instant, minutes } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";
import { canKeepGap } from "./spacing/spacing-oracle.ts";

const now = at("2026-11-20T00:00:00Z");
const byHand = aNode("byhand", { createdAt: now });

interface Fleet {
  readonly nodes: readonly NodeFacts[];
  readonly departures: readonly Departure[];
  readonly minMinutes?: number;
}

/** `n1 05:45` and so on, with the spacing and the number of moves. */
function plan({ nodes, departures, minMinutes = 15 }: Fleet) {
  const policies = [aPolicy({ spacing: { mode: "Late", minMs: minutes(minMinutes) } })];
  const all = { policies, badPolicies: [], nodes: [...nodes, byHand], departures, at: now };
  const [made] = planFleet(all).policies;
  const times = (made?.departures ?? []).map(
    (one) => `${one.node.name} ${formatInstant(one.departAt).slice(11, 16)}`,
  );
  return { times, spacing: made?.spacing, moved: made?.moved };
}

function asked(time: string, over: Partial<Departure> = {}): Departure {
  return aDeparture(byHand, { cause: "Manual", departAt: at(`2026-11-20T${time}:00Z`), ...over });
}

describe("planned departures beside a requested one", () => {
  // Three with one launch time leave by 23:30.
  const nodes = [aNode("n1"), aNode("n2"), aNode("n3")];

  it("keep the gap from it and from each other", () => {
    const { times } = plan({ nodes, departures: [asked("23:10")] });
    expect(times).toEqual(["n1 22:40", "n2 22:55", "n3 23:30"]);
  });

  it("do not move if it is far away or held", () => {
    const undisturbed = ["n1 23:00", "n2 23:15", "n3 23:30"];
    expect(plan({ nodes, departures: [asked("22:45")] }).times).toEqual(undisturbed);
    expect(plan({ nodes, departures: [asked("23:10", { hold: true })] }).times).toEqual(
      undisturbed,
    );
  });

  it("include one for its own node if it was requested for after that node's deadline", () => {
    const times = (departAt: string) => {
      const request = asked("00:00", { departAt: at(departAt) });
      return plan({ nodes: [], departures: [request] }).times;
    };
    expect(times("2026-11-20T23:30:00Z")).toEqual([]);
    expect(times("2026-11-20T23:30:01Z")).toEqual(["byhand 23:30"]);
  });

  it("include none for an overdue node that is requested to leave now", () => {
    const old = aNode("byhand", { createdAt: instant(now - hours(30)) });
    const request = aDeparture(old, { cause: "Manual", departAt: now, createdAt: now });
    const all = { policies: [aPolicy()], badPolicies: [], nodes: [old], at: now };
    const planned = (departAt: number) => {
      const departures = [{ ...request, departAt: instant(departAt) }];
      return planFleet({ ...all, departures }).policies[0]?.departures.length;
    };
    expect(planned(now)).toBe(0);
    expect(planned(now + hours(1))).toBe(1);
  });

  it("are not pushed along by one that has waited two hours for a budget", () => {
    const near = aDeparture(nodes[0] as NodeFacts, { departAt: at("2026-11-20T00:05:00Z") });
    const waiting = asked("00:00", { departAt: at("2026-11-19T22:00:00Z") });
    const made = plan({ nodes: nodes.slice(0, 1), departures: [near, waiting] });
    expect(made.times).toEqual(["n1 00:05"]);
  });

  it("are as far from it as possible if the gap does not fit, but keep their own gap", () => {
    // Two nodes have an hour left and should be 45 minutes apart: neither can be 45 minutes away
    // from 00:15.
    const old = ["n1", "n2"].map((name) => aNode(name, { createdAt: instant(now - hours(22.5)) }));
    const made = plan({ nodes: old, departures: [asked("00:15")], minMinutes: 45 });
    expect(made.times).toEqual(["n1 00:00", "n2 01:00"]);
    expect(made.spacing).toEqual({
      wantedMs: minutes(45),
      reachedMs: minutes(60),
      bestMs: minutes(60),
    });
  });

  it("move away from a new one, and the others stay", () => {
    const old = nodes.map((node, i) =>
      aDeparture(node, { departAt: at(`2026-11-20T2${i + 1}:00:00Z`) }),
    );
    const made = plan({ nodes, departures: [...old, asked("22:05")] });
    expect(made.moved).toBe(1);
    expect(made.times).toEqual(["n1 21:00", "n3 23:00", "n2 23:30"]);
  });

  it("keep away from it even if overdue", () => {
    const overdue = [aNode("n1", { createdAt: instant(now - hours(30)) })];
    const { times } = plan({ nodes: overdue, departures: [asked("00:05")] });
    expect(times).toEqual(["n1 00:20"]);
  });
});

describe("the distance from requested departures", () => {
  it("is the largest that keeps the planned gap, as an exhaustive search confirms", () => {
    for (let seed = 0; seed < 600; seed += 1) {
      const rng = seededRng(seed);
      const upTo = (most: number): number => Math.floor(rng() * (most + 1));
      const jobs = Array.from({ length: 1 + upTo(4) }, () => {
        const release = upTo(20);
        return { release, deadline: release + upTo(20) };
      });
      const requested = Array.from({ length: 1 + upTo(2) }, () => upTo(40));
      const open = { lows: [0, 22], highs: [18, 60] };
      const allowed = (away: number) =>
        jobs.map(({ release, deadline }) =>
          Array.from({ length: deadline - release + 1 }, (_, i) => release + i).filter(
            (start) =>
              (start <= 18 || start >= 22) &&
              requested.every((one) => Math.abs(one - start) >= away),
          ),
        );
      const gap = 1 + upTo(6);
      if (!canKeepGap(allowed(0), gap)) continue;
      let best = 0;
      while (best < gap && canKeepGap(allowed(best + 1), gap)) best += 1;
      const problem = { jobs, open, fixed: [] };
      const clear = clearOfRequests(problem, { gap, requested });
      const slots = earlyInstants(spacingOf({ ...problem, open: clear }), gap);
      expect(slots, `seed ${seed}`).toBeDefined();
      const away = [...(slots ?? [])].flatMap((slot) =>
        requested.map((one) => Math.abs(one - slot)),
      );
      expect(Math.min(gap, ...away), `seed ${seed}`).toBeGreaterThanOrEqual(best);
    }
  });
});
