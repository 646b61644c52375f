import { expect, it } from "vitest";
import type { DepartureStatus } from "../../../src/core/departure/departure.ts";
import { freshMemory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import { aScene, at, marked, statusIn, timeAt } from "./departure-scene.ts";

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
