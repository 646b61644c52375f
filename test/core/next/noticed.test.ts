import { expect, it } from "vitest";
import type { DepartureStatus } from "../../../src/core/departure/departure.ts";
import { freshMemory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import { aScene, at, inFlight, marked, statusIn, timeAt, unanswered } from "./departure-scene.ts";

type Phase = DepartureStatus["phase"];

const notice = { cause: "SpotInterruption", noticedAt: at(9000), deadlineAt: at(129_000) } as const;

/** What is done about a notice while the last phase is not in the cluster. */
function unwritten(recorded: readonly Phase[], intended: Phase, more: Partial<DepartureStatus>) {
  const status = statusIn(recorded);
  const scene = aScene({ departure: { ...notice, status }, node: marked() });
  const memory = {
    ...freshMemory(timeAt(0, 1)),
    intended: statusIn([...recorded, intended], more),
  };
  const { requests, status: after } = next(scene, memory, timeAt(10_000, 2));
  return { asked: requests.map(({ kind }) => kind), phase: after.phase };
}

it.each([
  {
    what: "a roll-back",
    recorded: ["Preparing", "Draining"],
    intended: "RollingBack",
    reason: "DrainTimeout",
  },
  {
    what: "a roll-back's end",
    recorded: ["Preparing", "Draining", "RollingBack"],
    intended: "Ended",
    reason: "DrainTimeout",
  },
  { what: "a hold", recorded: ["Preparing"], intended: "Held", reason: "OutsideWindow" },
] as const)("a notice is acted upon although $what cannot be written", (one) => {
  const { recorded, intended, reason } = one;
  const { asked, phase } = unwritten(recorded, intended, { reason });
  expect({ phase, asked }).toEqual({
    phase: "Preparing",
    asked: expect.arrayContaining(["Cordon"]),
  });
});

it("the end of a roll-back that a withdrawn notice has begun stands", () => {
  const status = statusIn(["Preparing", "Draining", "RollingBack"], { reason: "NoticeWithdrawn" });
  const departure = { ...notice, withdrawnAt: at(9500), status };
  const intended = statusIn([...["Preparing", "Draining", "RollingBack"], "Ended"] as Phase[], {
    reason: "NoticeWithdrawn",
  });
  const memory = { ...freshMemory(timeAt(0, 1)), intended };
  const { status: after } = next(aScene({ departure }), memory, timeAt(10_000, 2));
  expect(after.phase).toBe("Ended");
});

it("a start that a notice has made urgent is rolled back, not called off, if it is withdrawn", () => {
  const departure = { ...notice, withdrawnAt: at(9500), status: statusIn(["Scheduled"]) };
  const first = { event: "Due", reason: "Spaced" } as const;
  const intended = statusIn(["Preparing", "Draining"]);
  const memory = { ...freshMemory(timeAt(0, 1)), first, intended };
  const scene = aScene({ departure, node: marked() });
  expect(next(scene, memory, timeAt(10_000, 2)).status.phase).toBe("RollingBack");
});

it.each([
  ["is asked for", undefined],
  ["is under way", inFlight("Cordon")],
  ["has been refused and waits to be tried again", unanswered("Cordon", { answeredMs: 9_950 })],
])("marks are not renewed beside a cordon, which writes them: it %s", (_, asked) => {
  const departure = { ...notice, status: statusIn(["RollingBack", "Preparing"]) };
  const memory = {
    ...freshMemory(timeAt(0, 1)),
    ...{ markedFor: "Planned", asked: asked === undefined ? {} : { cordon: asked } },
  };
  const { requests } = next(aScene({ departure, node: marked() }), memory, timeAt(10_000, 2));
  expect(requests.map(({ kind }) => kind)).not.toContain("RenewMarks");
});

it("marks of an earlier notice are renewed on a node that is cordoned", () => {
  const departure = { ...notice, status: statusIn(["Preparing", "Draining"]) };
  const memory = { ...freshMemory(timeAt(0, 1)), markedFor: "Planned", cordonedMs: 5_000 };
  const { requests } = next(aScene({ departure, node: marked() }), memory, timeAt(10_000, 2));
  expect(requests.map(({ kind }) => kind)).toContain("RenewMarks");
});
