import { expect, it } from "vitest";
import { decide } from "../../../src/core/decide.ts";
import type { Snapshot } from "../../../src/core/departure/decision.ts";
import { gatesToAsk } from "../../../src/core/limits/gate.ts";
import { hours, plus, seconds } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, aPolicy, at, everyMachine } from "../fleet-builder.ts";

const bornAt = at("2026-11-20T00:00:00Z");
const gates = { alerts: { url: "http://alertmanager", matchers: [] }, blockingPods: [] };
const policy = { ...aPolicy(), gates };
const node = aNode("n1", { createdAt: bornAt });
const departAt = plus(bornAt, hours(20));
const waiting = aDeparture(node, {
  policy: policy.name,
  departAt,
  deadlineAt: plus(bornAt, hours(23.5)),
});

it("gates are queried from one minute before the first departure of their policy", () => {
  const view = { policies: [policy], departures: [waiting] };
  expect(gatesToAsk(view, plus(departAt, seconds(-61)))).toEqual([]);
  expect(gatesToAsk(view, plus(departAt, seconds(-60)))).toEqual([{ policy, nodes: ["n1"] }]);
});

it("a departure that moves to now starts only after its gates were queried", () => {
  // The new policy gives the node a shorter lifetime than before.
  const shorter = { ...policy, lifetime: { ...policy.lifetime, maxMs: hours(18.5) } };
  const now = plus(bornAt, hours(18));
  const world: Snapshot = {
    ...{ nodes: [node], policies: [shorter], departures: [waiting], badPolicies: [] },
    ...{ gateAnswers: {}, releaseAnswers: everyMachine },
  };
  const kinds = (gateAnswers: Snapshot["gateAnswers"]) =>
    decide({ ...world, gateAnswers }, now).decisions.map(({ kind }) => kind);
  expect(kinds({})).toEqual(["Move"]);
  expect(
    kinds({ [policy.name]: { alerts: [], blockingPods: new Map(), gangs: new Map() } }),
  ).toEqual(["Move", "Begin"]);
});
