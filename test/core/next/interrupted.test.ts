import { expect, it } from "vitest";
import { freshMemory, type Memory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import {
  answered,
  aScene,
  at,
  known,
  policy,
  statusIn,
  theNode,
  timeAt,
} from "./departure-scene.ts";

const start: Memory = { ...freshMemory(timeAt(0, 1)), markedFor: "Planned undefined undefined" };

it("a node whose end has rolled the departure back ends it with that reason", () => {
  const reason = "CancelledByPerson";
  const status = statusIn(["Preparing", "Draining", "RollingBack"], { reason, message: "why" });
  const facts = { nodeNow: known({ node: undefined }, 2) };
  const scene = aScene({ departure: { status }, node: undefined, facts });
  const lost = { event: "NodeGone", ms: 0, number: 2 } as const;
  const asked = { uncordon: answered("Uncordon") };
  const memory = { ...start, phase: { ms: 100, number: 3 }, lost, asked };
  const { status: after } = next(scene, memory, timeAt(200, 4));
  expect(after).toMatchObject({ phase: "Ended", reason, message: "why", outcome: "Cancelled" });
});

it("a node that goes while the departure is rolled back ends it as gone", () => {
  const reason = "DrainTimeout";
  const status = statusIn(["Preparing", "Draining", "RollingBack"], { reason });
  const facts = { nodeNow: known({ node: undefined }, 9) };
  const scene = aScene({ departure: { status }, node: undefined, facts });
  const { status: after } = next(scene, start, timeAt(200, 4));
  expect(after).toMatchObject({ phase: "Ended", reason: "NodeGone", outcome: "Preempted" });
});

it("a deleted Node is no preemption if its machine runs, though the Departure does not name it", () => {
  const node = { ...theNode, providerID: undefined };
  const departure = { node, status: statusIn(["Preparing", "Draining"]), createdAt: at(0) };
  const bornAt = at(-60_000);
  const running = { kind: "Present", id: "1", bornAt, running: true } as const;
  const facts = { nodeNow: known({ node: undefined }, 9), machineBehind: known(running, 9) };
  const scene = aScene({ departure, node: undefined, facts });
  const memory = { ...start, target: theNode, identifiedIn: "Draining" as const };
  expect(next(scene, memory, timeAt(2000, 4)).status).toMatchObject({
    ...{ phase: "RollingBack", reason: "CancelledByPerson" },
    message: expect.stringContaining("its machine still runs"),
  });
});

it.each([
  { what: "whose machine we have released is expected", releasedNumber: 3, reason: "Released" },
  {
    what: "that goes while its release is retried ends it",
    releasedNumber: undefined,
    reason: "NodeGone",
  },
])("a node $what", ({ releasedNumber, reason }) => {
  const machine = { id: "1", mode: "Recreate" } as const;
  const status = statusIn(["Preparing", "Draining", "Releasing"], {
    ...{ reason: "ReleaseRetried", machine },
  });
  const facts = { nodeNow: known({ node: undefined }, 9) };
  const scene = aScene({ departure: { status }, node: undefined, facts, policy });
  const asked = { "remove node": answered("RemoveNode") };
  const memory = { ...start, cordonedMs: -60_000, releasedNumber, asked };
  expect(next(scene, memory, timeAt(200, 4)).status).toMatchObject({ phase: "Ended", reason });
});

it("before the cordon of a notice, nothing waits for a read: the patch tests the machine", () => {
  const notice = { cause: "SpotInterruption", noticedAt: at(0), deadlineAt: at(120_000) } as const;
  const rebooted = { ...theNode, bootID: "boot-2" };
  const departure = { ...notice, node: { ...theNode, bootID: "boot-1" } };
  const scene = aScene({
    departure: { ...departure, status: statusIn(["Preparing"]) },
    node: rebooted,
  });
  const { requests, needs } = next(scene, start, timeAt(10, 2));
  expect(requests.map(({ kind }) => kind)).toEqual(["Cordon"]);
  expect(needs).toEqual([]);
});
