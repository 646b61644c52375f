import { describe, expect, it } from "vitest";
import { freshMemory, type Memory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import type { RequestFault } from "../../../src/core/next/scene.ts";
import { minutes } from "../../../src/core/time/time.ts";
import {
  answered,
  aScene,
  at,
  known,
  marked,
  policy,
  statusIn,
  theNode,
  timeAt,
} from "./departure-scene.ts";

const start: Memory = { ...freshMemory(timeAt(0, 1)), markedFor: "Planned undefined undefined" };
const drained = statusIn(["Preparing", "Draining"]);
const refused: RequestFault = { code: "API_REFUSED", message: "403: no status", retryable: false };
const away: RequestFault = { ...refused, code: "API_UNREACHABLE" };

/** The drain has ended, and that cannot be written since 0 ms. */
function unwritten(fault: RequestFault, ms: number, more: Partial<Memory> = {}) {
  const scene = aScene({
    departure: { status: drained },
    node: marked(),
    unwritten: { fault, sinceMs: 0 },
  });
  const intended = statusIn(["Preparing", "Draining", "Releasing"]);
  return next(scene, { ...start, cordonedMs: 0, intended, ...more }, timeAt(ms, 2));
}

describe("a release that cannot be recorded", () => {
  const { awaitMachineMs } = policy.instance;

  it("is waited for as long as the policy says, and looked at then", () => {
    const { status, requests, lookAgainAt } = unwritten(refused, awaitMachineMs - 1);
    expect(status.phase).toBe("Releasing");
    expect(requests).toEqual([]);
    expect(lookAgainAt).toBe(at(awaitMachineMs));
  });

  it("is given up then in the server's words, and the node is given back without a record", () => {
    const { status, requests, memory } = unwritten(refused, awaitMachineMs);
    expect(status).toMatchObject({ phase: "RollingBack", reason: "RequestRefused" });
    expect(status.message).toContain("403: no status");
    expect(requests.map(({ kind }) => kind)).toEqual(["Uncordon"]);
    // It ends once it is recorded.
    const asked = { ...memory.asked, uncordon: answered("Uncordon") };
    const done = unwritten(refused, awaitMachineMs + 1000, { ...memory, asked });
    expect(done.status.phase).toBe("RollingBack");
    expect(done.requests).toEqual([]);
  });

  it("is not given up for an API server that is away", () => {
    expect(unwritten(away, 10 * awaitMachineMs).status.phase).toBe("Releasing");
  });
});

describe("a roll-back that cannot be recorded", () => {
  const intended = statusIn(["Preparing", "Draining", "RollingBack"], { reason: "DrainTimeout" });

  it("is carried out a minute later", () => {
    const early = unwritten(refused, minutes(1) - 1, { intended });
    expect([early.requests, early.lookAgainAt]).toEqual([[], at(minutes(1))]);
    const { requests } = unwritten(refused, minutes(1), { intended });
    expect(requests.map(({ kind }) => kind)).toEqual(["Uncordon"]);
  });

  it("waits for an API server that is away", () => {
    expect(unwritten(away, minutes(60), { intended }).requests).toEqual([]);
  });

  it("is begun anew by a notice, although the node is free by then", () => {
    const memory = { ...start, intended, isUndoneWithoutRecord: true } as const;
    const noticed = {
      cause: "SpotInterruption",
      noticedAt: at(0),
      deadlineAt: at(120_000),
    } as const;
    const scene = aScene({
      departure: { ...noticed, status: drained },
      unwritten: { fault: refused, sinceMs: 0 },
    });
    const asked = { uncordon: answered("Uncordon") };
    const out = next(scene, { ...memory, asked }, timeAt(2000, 2));
    expect(out.status.phase).toBe("Preparing");
    expect(out.requests.map(({ kind }) => kind)).toContain("Cordon");
  });
});

describe("a node that an earlier leader has given back without a record", () => {
  const free = known({ node: theNode }, 9);

  it.each([
    ["Draining", drained],
    ["Releasing", statusIn(["Preparing", "Draining", "Releasing"])],
  ])("is not taken again by the next one: %s", (_, status) => {
    const scene = aScene({ departure: { status }, facts: { nodeNow: free } });
    const out = next(scene, start, timeAt(10_000, 2));
    expect(out.status).toMatchObject({ phase: "RollingBack", reason: "RolledBackByRule" });
    expect(out.status.message).toContain("stays, and was uncordoned: by a leader");
    const unread = next(aScene({ departure: { status } }), start, timeAt(10_000, 2));
    expect(unread.requests).toEqual([]);
    expect(unread.needs.map(({ name }) => name)).toContain("nodeNow");
  });

  it("keeps its machine, although that was recorded for the release", () => {
    const machine = { id: "7", mode: "Recreate" } as const;
    const status = statusIn(["Preparing", "Draining", "Releasing"], { machine });
    const lastLook = { node: theNode, isLive: true, pods: [] };
    const scene = aScene({ departure: { status }, lastLook });
    const out = next(scene, { ...start, cordonedMs: 0 }, timeAt(10_000, 2));
    expect(out.status).toMatchObject({ phase: "RollingBack", reason: "RolledBackByRule" });
    expect(out.requests.map(({ kind }) => kind)).not.toContain("Release");
  });

  it("was given back by a person if our annotation is still there", () => {
    const opened = { ...marked(), unschedulable: false };
    const facts = { nodeNow: known({ node: opened }, 9) };
    const scene = aScene({ departure: { status: drained }, facts });
    expect(next(scene, start, timeAt(10_000, 2)).status).toMatchObject({
      ...{ phase: "RollingBack", reason: "CancelledByPerson" },
    });
  });
});
