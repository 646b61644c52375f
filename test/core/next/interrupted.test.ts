import { expect, it } from "vitest";
import { freshMemory, type Memory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import {
  answered,
  aScene,
  at,
  failed,
  known,
  policy,
  statusIn,
  theNode,
  timeAt,
} from "./departure-scene.ts";

const running = { kind: "Present", id: "1", bornAt: at(-60_000), running: true } as const;

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

const drainedInVain = statusIn(["Preparing", "Draining", "RollingBack"], {
  reason: "DrainTimeout",
});
const unknown = { code: "CLOUD_CREDENTIALS", retryable: false };

it.each([
  {
    what: "ends it as taken if its cloud knows no such machine",
    machineBehind: known({ kind: "Absent" } as const, 9),
    end: { phase: "Ended", reason: "NodeGone", outcome: "Preempted" },
  },
  {
    what: "ends it as taken where no cloud can be asked",
    machineBehind: known("NobodyToAsk" as const, 9),
    end: { phase: "Ended", reason: "NodeGone", outcome: "Preempted" },
  },
  {
    what: "leaves it its own end if its machine runs",
    machineBehind: known(running, 9),
    end: { phase: "Ended", reason: "DrainTimeout", outcome: "RolledBack" },
  },
  {
    what: "leaves it its own end if its cloud cannot say",
    machineBehind: failed(unknown),
    end: { phase: "Ended", reason: "DrainTimeout", outcome: "RolledBack" },
  },
])("a node that goes while the departure is rolled back $what", ({ machineBehind, end }) => {
  const facts = { nodeNow: known({ node: undefined }, 9), machineBehind };
  const departure = { status: drainedInVain, createdAt: at(0) };
  const scene = aScene({ departure, node: undefined, facts });
  const memory = { ...start, asked: { uncordon: answered("Uncordon") } };
  expect(next(scene, memory, timeAt(200, 4)).status).toMatchObject(end);
});

it("a cloud that does not answer is asked again, and nothing is said of the machine then", () => {
  const facts = {
    nodeNow: known({ node: undefined }, 9),
    machineBehind: failed({ retryable: true }),
  };
  const departure = { status: statusIn(["Preparing", "Draining"]), createdAt: at(0) };
  const scene = aScene({ departure, node: undefined, facts });
  const early = next(scene, start, timeAt(2000, 4));
  expect(early.status.phase).toBe("Draining");
  expect(early.lookAgainAt).toBe(at(7000));
  const { status, memory } = next(scene, early.memory, timeAt(7000, 5));
  expect(status).toMatchObject({ phase: "RollingBack", reason: "NodeGone" });
  expect(status.message).toContain("its cloud does not show whether the machine still runs");
  const rolledBack = aScene({ departure: { createdAt: at(0), status }, node: undefined, facts });
  const asked = { uncordon: answered("Uncordon") };
  const over = next(rolledBack, { ...memory, asked }, timeAt(7100, 6)).status;
  expect(over).toMatchObject({ phase: "Ended", reason: "NodeGone", outcome: "Cancelled" });
});

it("a release goes on where nobody knows whether the machine is gone with its Node", () => {
  const machine = { id: "1", mode: "Recreate" } as const;
  const status = statusIn(["Preparing", "Draining", "Releasing"], {
    ...{ reason: "ReleaseRetried", machine },
  });
  const facts = { nodeNow: known({ node: undefined }, 9), machineBehind: failed(unknown) };
  const departure = { status, createdAt: at(0) };
  const scene = aScene({ departure, node: undefined, facts, policy });
  const { status: after, requests } = next(
    scene,
    { ...start, cordonedMs: -60_000 },
    timeAt(200, 4),
  );
  expect(after.phase).toBe("Releasing");
  expect(requests.map(({ kind }) => kind)).toContain("Release");
});

it("a deleted Node is no preemption if its machine runs, though the Departure does not name it", () => {
  const node = { ...theNode, providerID: undefined };
  const departure = { node, status: statusIn(["Preparing", "Draining"]), createdAt: at(0) };
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
