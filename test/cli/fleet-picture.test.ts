import { expect, it } from "vitest";
import { fleetPicture } from "../../src/cli/demo/fleet-picture.ts";
import { aNode, aPolicy, at } from "../core/fleet-builder.ts";

it("A policy that cannot be read keeps its place among the policies, with the field", () => {
  const problem = 'spec.windows[0].timeZone: found "Local", expected an IANA time zone';
  const view = {
    ...{ nodes: [aNode("n1"), aNode("n2")], departures: [], audits: new Map() },
    policies: [aPolicy({ name: "batch" }), aPolicy({ name: "web" })],
    badPolicies: [{ name: "spot", problem, weight: 9 }],
  };
  const none = { machines: [], twins: [] };
  const { policies } = fleetPicture(none, view, at("2026-11-20T12:00:00Z"));
  expect(policies.map(({ name }) => name)).toEqual(["batch", "spot", "web"]);
  expect(policies[1]).toMatchObject({
    ...{ problem, forecast: "Cannot be read: it holds back 2 nodes" },
  });
});
