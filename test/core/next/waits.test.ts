import { describe, expect, it } from "vitest";
import { capacityReserved } from "../../../src/core/next/capacity-steps.ts";
import { Evaluation } from "../../../src/core/next/evaluation.ts";
import { freshMemory, type Memory } from "../../../src/core/next/memory.ts";
import { type Next, next } from "../../../src/core/next/next.ts";
import type { DepartureScene } from "../../../src/core/next/scene.ts";
import { minutes } from "../../../src/core/time/time.ts";
import { pod } from "../drain/drain-scene.ts";
import { aPolicy } from "../fleet-builder.ts";
import {
  aScene,
  at,
  failed,
  known,
  marked,
  policy,
  statusIn,
  theNode,
  timeAt,
  unanswered,
} from "./departure-scene.ts";

const start: Memory = { ...freshMemory(timeAt(0, 1)), markedFor: "Planned undefined undefined" };

/** Evaluates the same scene each time that it asks to be looked at, up to a time. */
function until(
  ms: number,
  sceneAt: (out: Next, ms: number) => DepartureScene,
  first: DepartureScene,
) {
  let now = 0;
  let number = 1;
  let out = next(first, start, timeAt(0, number));
  while (out.lookAgainAt !== undefined && out.lookAgainAt <= at(ms)) {
    now = out.lookAgainAt - at(0);
    number += 1;
    out = next(sceneAt(out, now), out.memory, timeAt(now, number));
  }
  return { out, ms: now, number };
}

const reserving = aPolicy({
  ...policy,
  replacement: { when: "BeforeDrain", timeoutMs: minutes(1), onTimeout: "Proceed" },
});

describe("a list that never comes", () => {
  it("of placeholders does not keep the node cordoned", () => {
    const status = statusIn(["Preparing", "ReplacementWait" as never, "Draining", "RollingBack"]);
    const scene = aScene({ departure: { status }, node: marked(), policy: reserving });
    const { out, ms } = until(120_000, () => scene, scene);
    expect(out.requests.map(({ kind }) => kind)).toEqual(["Uncordon"]);
    expect(ms).toBeLessThanOrEqual(30_000);
  });

  it("of volumes ends the wait when that is over", () => {
    const status = statusIn(["Preparing", "Draining"]);
    const scene = aScene({ departure: { status }, node: marked() });
    const drained: Memory["drained"] = {
      ...{ verdict: "Done", endedAt: at(3000), rule: policy.drain, volumes: "Some", staying: [] },
    };
    const emptyAt = at(3000);
    const memory = {
      ...start,
      target: theNode,
      identifiedIn: "Draining",
      cordonedMs: 0,
      drained,
      emptyAt,
    } as const;
    const early = next(scene, memory, timeAt(3000, 2));
    expect(early.lookAgainAt).toBe(at(301_000));
    expect(next(scene, early.memory, timeAt(301_000, 3)).status.phase).toBe("Releasing");
  });
});

describe("a read that is refused for good", () => {
  it("while the cloud finds no machine ends the release", () => {
    const status = statusIn(["Preparing", "Draining", "Releasing"]);
    const facts = { machine: known({ kind: "Absent" as const }, 9), nodeNow: failed() };
    const scene = aScene({ departure: { status }, node: marked(), facts });
    const memory = { ...start, cordonedMs: -60_000 };
    const { status: after } = next(scene, memory, timeAt(10_000, 2));
    expect(after).toMatchObject({ phase: "RollingBack", reason: "ReleaseFailed" });
  });
});

describe("a node that the watch shows as gone, and a read as there", () => {
  it("is read again, so that its end is noticed", () => {
    const status = statusIn(["Preparing", "Draining"]);
    const gone = aScene({ departure: { status }, node: undefined });
    const first = next(gone, start, timeAt(0, 2));
    const there = { ...gone, facts: { nodeNow: known({ node: marked() }, 2) } };
    const doubted = next(there, first.memory, timeAt(10, 3));
    expect(doubted.lookAgainAt).toBeLessThanOrEqual(at(60_000));
    const again = next(there, doubted.memory, timeAt(60_000, 4));
    const since = again.needs.find(({ name }) => name === "nodeNow")?.since;
    expect(since).toBeGreaterThan(2);
    const facts = { nodeNow: known({ node: undefined }, 4), machineBehind: failed() };
    const { status: after } = next({ ...gone, facts }, again.memory, timeAt(60_020, 5));
    expect(after.phase).toBe("Ended");
  });
});

describe("a roll-back whose node may not be read", () => {
  const refused = { uncordon: unanswered("Uncordon", { fault: failed().fault, againMs: 1e12 }) };

  it.each([
    { what: "nothing of ours, ends after a minute", node: theNode, cordoned: {}, phase: "Ended" },
    { what: "our marks, waits", node: marked(), cordoned: {}, phase: "RollingBack" },
    {
      what: "nothing of ours yet, but was cordoned here, waits",
      ...{ node: theNode, cordoned: { cordonedMs: 0 }, phase: "RollingBack" },
    },
  ])("and that shows $what", ({ node, cordoned, phase }) => {
    const status = statusIn(["Preparing", "RollingBack"], { reason: "RequestRefused" });
    const scene = aScene({ departure: { status }, node });
    const early = next(scene, { ...start, ...cordoned, asked: refused }, timeAt(59_000, 2));
    expect(early.status.phase).toBe("RollingBack");
    const { status: after } = next(scene, early.memory, timeAt(60_000, 3));
    expect(after.phase).toBe(phase);
  });
});

describe("a node that the watch shows as gone, and that cannot be read", () => {
  const unreadable = { nodeNow: failed() };

  it("is awaited by its roll-back for a minute: its marks, if it has any, are removed later", () => {
    const status = statusIn(["Preparing", "Draining", "RollingBack"], { reason: "DrainTimeout" });
    const scene = aScene({ departure: { status }, node: undefined, facts: unreadable });
    const refused = { ...start, asked: { uncordon: unanswered("Uncordon") } };
    const early = next(scene, refused, timeAt(59_000, 2));
    expect(early.status.phase).toBe("RollingBack");
    expect(early.lookAgainAt).toBe(at(60_000));
    const { status: after } = next(scene, early.memory, timeAt(60_000, 3));
    expect(after).toMatchObject({ phase: "Ended", outcome: "RolledBack", reason: "DrainTimeout" });
  });

  it("does not keep the actions around it from being undone", () => {
    const status = statusIn(["Preparing", "Draining", "RollingBack"]);
    const kind = "deregisterTargets" as const;
    const done = { state: "Done", attempts: 1, undo: { groups: [] } } as const;
    const actions = [{ name: "targets", kind, at: "AtNotice", ...done } as const];
    const scene = aScene({ departure: { status }, node: undefined, facts: unreadable, actions });
    const { requests } = next(scene, start, timeAt(0, 2));
    expect(requests.map(({ kind }) => kind)).toEqual(["UndoAction"]);
  });

  it("is given up when nobody has taken its machine for as long as the policy says", () => {
    const none = aPolicy({ ...policy, instance: { ...policy.instance, release: "None" } });
    const status = statusIn(["Preparing", "Draining", "Releasing"]);
    const on = { departure: { status }, node: undefined, facts: unreadable, policy: none };
    const ms = 2000 + none.instance.awaitMachineMs;
    expect(next(aScene(on), start, timeAt(ms, 2)).status).toMatchObject({
      ...{ phase: "RollingBack", reason: "MachineNotTaken" },
    });
  });

  it("keeps its pods: they may be another machine's by now", () => {
    const status = statusIn(["Preparing", "Draining"]);
    const facts = { ...unreadable, pods: known([pod("web-1")]), budgets: known([]) };
    const memory = { ...start, target: theNode, identifiedIn: "Draining" as const };
    const scene = aScene({ departure: { status }, node: undefined, facts });
    expect(next(scene, memory, timeAt(2000, 2)).requests).toEqual([]);
  });
});

describe("a drain whose node could not be read when it began", () => {
  const status = statusIn(["Preparing", "Draining"]);
  const phaseWith = (code: string) => {
    const facts = { nodeNow: failed({ code, retryable: true }) };
    const scene = aScene({ departure: { status }, node: marked(), facts });
    return next(scene, start, timeAt(policy.drain.timeoutMs, 2)).status.phase;
  };

  it("is not given up for an API server that is away: nobody could act meanwhile", () => {
    expect(phaseWith("API_UNREACHABLE")).toBe("Draining");
  });

  it("is given up if that is refused for its timeout", () => {
    expect(phaseWith("API_REFUSED")).toBe("RollingBack");
  });
});

describe("a wait before the drain lasts no longer on a clock that was set back", () => {
  /** So long after the phase began, on a clock that was set back by an hour since. */
  const setBack = (ms: number) => ({ at: at(ms - 3_600_000), ms, number: 2 });

  it("for capacity", () => {
    const status = statusIn(["Preparing", "ReplacementWait" as never]);
    const scene = aScene({
      departure: { status: { ...status, phase: "Preparing" } },
      policy: reserving,
    });
    const memory = { ...start, reservingMs: 0 };
    const evaluate = (ms: number) => new Evaluation(scene, memory, setBack(ms));
    const early = evaluate(59_999);
    expect([capacityReserved(early), early.lookAgainAt]).toEqual(["Wait", at(60_000 - 3_600_000)]);
    const late = evaluate(60_000);
    expect(capacityReserved(late)).toBeUndefined();
    expect(late.memory.missed?.reason).toBe("ReplacementTimeout");
  });
});
