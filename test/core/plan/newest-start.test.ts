import { expect, it } from "vitest";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { formatInstant, instant, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at } from "../fleet-builder.ts";

const now = at("2026-11-20T00:00:00Z");

it("in Even no departure that can keep spacing.min from the newest start moves towards it", () => {
  const policy = aPolicy({ spacing: { mode: "Even", minMs: minutes(15) } });
  // Two have about 72 minutes: n1 leaves now and n2 at its deadline. n3 has 21 hours. Once n1 has
  // started, n2 could leave right behind it, and be further from n3 than it was from n1.
  const leftMinutes = (name: string, count: number) =>
    aNode(name, { createdAt: instant(now - minutes(23 * 60 + 30 - count)) });
  const [n1, n2, n3] = [leftMinutes("n1", 71), leftMinutes("n2", 72), leftMinutes("n3", 1260)];
  const departures = [
    aDeparture(n1, { departAt: now, status: { phase: "Draining", startedAt: now } }),
    aDeparture(n2, { departAt: plus(now, minutes(72)) }),
    aDeparture(n3, { departAt: plus(now, minutes(1260)) }),
  ];
  const input = { policies: [policy], badPolicies: [], nodes: [n1, n2, n3], departures };
  const [made] = planFleet({ ...input, at: plus(now, seconds(1)) }).policies;
  expect(made?.departures.map((one) => `${one.node.name} ${formatInstant(one.departAt)}`)).toEqual([
    "n2 2026-11-20T01:12:00.000Z",
    "n3 2026-11-20T21:00:00.000Z",
  ]);
  expect(made?.moved).toBe(0);
});
