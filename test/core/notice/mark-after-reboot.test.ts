import { expect, it } from "vitest";
import type { NodeCondition, NodeFacts } from "../../../src/core/cluster/node.ts";
import type { Departure } from "../../../src/core/departure/departure.ts";
import { callsOfMarks } from "../../../src/core/notice/node-notice.ts";
import { defaultPolicy } from "../../../src/core/policy/policy.ts";
import { at } from "../fleet-builder.ts";

const nowAt = at("2026-08-01T05:40:00Z");
const undated = { type: "VMEventScheduled", reason: "RebootScheduled", message: "" };
const past = "Reboot Scheduled: Sat, 01 Aug 2026 05:35:00 GMT. DurationInSeconds: -1.";
const ahead = past.replace("05:35", "06:35");
const own = "EventId: 218E41FF-3A0A-4AFA-9A0B-2F5B6C7D8E9F";

function marked(bootID: string, fields: Partial<NodeCondition>): NodeFacts {
  return {
    ...{ name: "aks-1", uid: "0b1f7a3e-7f0e", bootID, annotations: {}, taints: [] },
    labels: { "kubernetes.azure.com/scalesetpriority": "spot" },
    ...{ unschedulable: false, ready: true },
    noticeConditions: [{ ...undated, ...fields }],
  };
}

/** The new departures of a node with these former ones. */
function orders(node: NodeFacts, former: readonly Departure[]) {
  const policies = [{ ...defaultPolicy, name: "spot" }];
  const departureNamed = (name: string) => former.find((one) => one.name === name);
  const scene = { policies, at: nowAt, departuresOf: () => former, departureNamed };
  return callsOfMarks([node], scene).flatMap((call) => (call.kind === "Make" ? call.order : []));
}

it.each<[string, Partial<NodeCondition>, Partial<NodeCondition>, number]>([
  ["the event's own id", { message: `Started. ${own}` }, {}, 0],
  ["a past time", { message: past }, {}, 0],
  ["neither", { since: "2026-08-01T05:30:00Z" }, {}, 0],
  ["a time that is still to come", { message: `${ahead} ${own}` }, {}, 1],
  [
    "the id of another event",
    { message: `Started. ${own}` },
    { message: "Started. EventId: 602d9444-d2cd-49c7-8624-8643e7171297" },
    1,
  ],
  [
    "neither, which had gone meanwhile",
    { since: "2026-08-01T05:30:00Z" },
    { since: "2026-08-02T05:30:00Z" },
    1,
  ],
  ["neither, and is of unknown age", {}, {}, 1],
])("after a reboot, a mark with %s drains the node as often as there are events", (...row) => {
  const [, before, change, times] = row;
  const [order] = orders(marked("boot-1", before), []);
  // Whether or not its end could be recorded.
  for (const phase of ["Ended", "RollingBack", "Draining"] as const) {
    const status = { phase, reason: "MachineRebooted", timeline: [] } as const;
    const former = { ...order, uid: "d1", resourceVersion: "1", hold: false, status } as Departure;
    expect(orders(marked("boot-2", { ...before, ...change }), [former])).toHaveLength(times);
  }
});
