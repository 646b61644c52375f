import { expect, it } from "vitest";
import { planFleet } from "../../../src/core/plan/plan.ts";
import { formatInstant, hours, instant } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, daily, inZone } from "../fleet-builder.ts";

const now = at("2026-11-20T00:00:00Z");

function bornHours(hoursAgo: number, zone: string) {
  return (name: string) =>
    aNode(name, { createdAt: instant(now - hours(hoursAgo)), ...inZone(zone) });
}

it("overdue nodes of the same age alternate zones", () => {
  const nodes = [
    bornHours(41, "a")("n0"),
    ...["n1", "n2", "n3"].map(bornHours(40, "a")),
    ...["n4", "n5"].map(bornHours(40, "b")),
    bornHours(40, "c")("n6"),
    bornHours(30, "c")("n7"),
  ];
  const input = { policies: [aPolicy()], badPolicies: [], nodes, departures: [], at: now };
  const [made] = planFleet(input).policies;
  const order = made?.departures.map(
    ({ node, departAt }) => `${formatInstant(departAt).slice(11, 16)} ${node.name}`,
  );
  // The oldest, in zone a, is first and the youngest last. The others alternate zones, each time
  // from the zone with the most nodes left: a b a b a c a c.
  expect(order).toEqual([
    ...["00:00 n0", "00:15 n4", "00:30 n1", "00:45 n5"],
    ...["01:00 n2", "01:15 n6", "01:30 n3", "01:45 n7"],
  ]);
});

it("an overdue node on hold until the year 9999 is planned without computing every window", () => {
  const annotations = { "lastcall.dev/hold": "9999-12-31T23:59:59Z" };
  const old = { createdAt: instant(now - hours(30)) };
  const nodes = [aNode("held", { ...old, annotations }), aNode("free", old)];
  const policies = [aPolicy({ windows: [daily("22:00-06:00")] })];
  const input = { policies, badPolicies: [], nodes, at: now };
  const first = planFleet({ ...input, departures: [] }).policies[0]?.departures ?? [];
  const departures = first.map(({ node, departAt }) => aDeparture(node, { departAt }));
  const again = planFleet({ ...input, departures }).policies[0]?.departures ?? [];
  for (const made of [first, again]) {
    expect(made.map(({ node, departAt }) => `${node.name} ${formatInstant(departAt)}`)).toEqual([
      "free 2026-11-20T00:00:00.000Z",
      "held 9999-12-31T23:59:59.000Z",
    ]);
  }
});
