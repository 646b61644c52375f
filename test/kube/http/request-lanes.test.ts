import { describe, expect, it } from "vitest";
import type { Urgency } from "../../../src/contracts/kube-api.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { instant, millis, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { RequestLanes } from "../../../src/kube/http/request-limits.ts";
import { ManualClock } from "../../support/manual-clock.ts";

type Lane = Exclude<Urgency, "Apart">;

const never = new AbortController().signal;
const now = instant(1_800_000_000_000);
const clock = new ManualClock();

/** Enters `count` requests at once; the result shows how many have been admitted. */
function crowd(lanes: RequestLanes, urgency: Lane, count: number) {
  const entered = { count: 0 };
  for (let index = 0; index < count; index += 1) {
    void lanes.enter({ urgency }, never).then(() => {
      entered.count += 1;
    });
  }
  return entered;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

describe("RequestLanes", () => {
  it("admits as many requests as there is room for, and keeps an eighth of it for First", async () => {
    const lanes = new RequestLanes(64, clock);
    const later = crowd(lanes, "Later", 70);
    const now = crowd(lanes, "Now", 1);
    const first = crowd(lanes, "First", 10);
    await settle();
    expect([later.count, now.count, first.count]).toEqual([56, 0, 8]);
  });

  it("reports a rush when a First or Now request has to wait, but not for a Later request", async () => {
    let rushes = 0;
    const lanes = new RequestLanes(8, clock, () => {
      rushes += 1;
    });
    crowd(lanes, "Now", 7);
    crowd(lanes, "Later", 20);
    await settle();
    expect(rushes).toBe(0);
    crowd(lanes, "Now", 1);
    crowd(lanes, "First", 2);
    await settle();
    expect(rushes).toBe(2);
  });

  it("reports a rush as long as an urgent request waits, even if no other arrives", async () => {
    let rushes = 0;
    const lanes = new RequestLanes(2, clock, () => {
      rushes += 1;
    });
    crowd(lanes, "Now", 5);
    await settle();
    const told: number[] = [];
    for (let left = 0; left < 3; left += 1) {
      rushes = 0;
      lanes.leave("Now");
      await settle();
      told.push(rushes);
    }
    expect(told).toEqual([1, 1, 0]);
  });

  it("admits four Later requests while a Now request is in flight", async () => {
    const lanes = new RequestLanes(64, clock);
    const now = crowd(lanes, "Now", 1);
    const later = crowd(lanes, "Later", 20);
    await settle();
    expect([now.count, later.count]).toEqual([1, 4]);
  });

  it("admits eight Now requests, such as evictions, while a First request is in flight", async () => {
    const lanes = new RequestLanes(64, clock);
    const first = crowd(lanes, "First", 20);
    const now = crowd(lanes, "Now", 20);
    await settle();
    expect([first.count, now.count]).toEqual([20, 8]);
  });

  it.each([
    { few: "fifteen", now: 15, first: 0, lane: "Later", admitted: 4 },
    { few: "fifteen", now: 15, first: 0, lane: "Soon", admitted: 4 },
    { few: "sixteen", now: 16, first: 0, lane: "Later", admitted: 1 },
    { few: "sixteen", now: 16, first: 0, lane: "Soon", admitted: 1 },
    { few: "a cordon and fifteen", now: 15, first: 1, lane: "Later", admitted: 1 },
  ] as const)("admits $admitted $lane requests beside $few more urgent ones", async (found) => {
    const lanes = new RequestLanes(64, clock);
    crowd(lanes, "Now", found.now);
    crowd(lanes, "First", found.first);
    const records = crowd(lanes, found.lane, 20);
    await settle();
    expect(records.count).toBe(found.admitted);
  });

  it.each([
    { lane: "Soon", pace: 12, admitted: [0, 12, 24, 36, 48, 60, 72, 84] },
    { lane: "Later", pace: 32, admitted: [0, 32, 64] },
  ] as const)(
    "admits one $lane request per $pace urgent requests that end in a crowd",
    async (of) => {
      const lanes = new RequestLanes(64, clock);
      crowd(lanes, "Now", 20);
      const records = crowd(lanes, of.lane, 20);
      const admitted: number[] = [];
      for (let ended = 0; ended < 96; ended += 1) {
        await settle();
        // A record is answered at once, so that only the pace holds the next one back.
        if (records.count > admitted.length) {
          admitted.push(ended);
          lanes.leave(of.lane);
        }
        crowd(lanes, "Now", 1);
        lanes.leave("Now");
      }
      expect(admitted).toEqual(of.admitted);
    },
  );

  it("admits all Soon requests before a Later one", async () => {
    const lanes = new RequestLanes(1, clock);
    const entered: string[] = [];
    const enter = (urgency: Lane) =>
      lanes.enter({ urgency }, never).then((lane) => entered.push(lane));
    crowd(lanes, "Now", 1);
    for (const urgency of ["Later", "Soon", "Later", "Soon"] as const) void enter(urgency);
    lanes.leave("Now");
    for (const lane of ["Soon", "Soon", "Later"] as const) {
      await settle();
      lanes.leave(lane);
    }
    await settle();
    expect(entered).toEqual(["Soon", "Soon", "Later", "Later"]);
  });

  it("admits no further Later request while the urgent requests of a crowd hang", async () => {
    const lanes = new RequestLanes(64, clock);
    const records = crowd(lanes, "Later", 1);
    crowd(lanes, "Now", 64);
    const later = crowd(lanes, "Later", 20);
    await settle();
    lanes.leave("Later");
    await settle();
    expect([records.count, later.count]).toEqual([1, 0]);
  });

  it("admits the remaining Later requests when the last Now request ends", async () => {
    const lanes = new RequestLanes(64, clock);
    crowd(lanes, "Now", 1);
    const later = crowd(lanes, "Later", 20);
    await settle();
    lanes.leave("Now");
    await settle();
    expect(later.count).toBe(20);
  });

  it("gives a free place to a Now request, even if a Later request has waited longer", async () => {
    const lanes = new RequestLanes(2, clock);
    crowd(lanes, "Later", 2);
    const later = crowd(lanes, "Later", 1);
    const now = crowd(lanes, "Now", 1);
    await settle();
    lanes.leave("Later");
    await settle();
    expect([now.count, later.count]).toEqual([1, 0]);
  });

  it("moves a Later request to Soon as soon as it becomes urgent, waiting or not", async () => {
    const lanes = new RequestLanes(4, clock);
    const hurry = new AbortController();
    const entered: string[] = [];
    crowd(lanes, "Now", 4);
    const enter = (name: string, signal?: AbortSignal) =>
      lanes.enter({ urgency: "Later", hurry: signal }, never).then((lane) => {
        entered.push(`${name} by ${lane}`);
      });
    void enter("before");
    const hurried = enter("hurried", hurry.signal);
    hurry.abort();
    const later = enter("hurried before it came", hurry.signal);
    for (let left = 0; left < 2; left += 1) lanes.leave("Now");
    await Promise.all([hurried, later]);
    expect(entered).toEqual(["hurried by Soon", "hurried before it came by Soon"]);
  });

  it.each([
    ["becomes urgent while it waits", false],
    ["is urgent when it comes", true],
  ])(
    "moves a Soon request to Now after three seconds in which nothing ends: it %s",
    async (_, early) => {
      const lanes = new RequestLanes(20, clock);
      const hurry = new AbortController();
      crowd(lanes, "Now", 17);
      for (const urgency of ["Later", "Soon"] as const) {
        lanes.leave(await lanes.enter({ urgency }, never));
      }
      if (early) hurry.abort();
      const entered: string[] = [];
      const enter = (signal: AbortSignal) =>
        lanes.enter({ urgency: "Later", hurry: hurry.signal }, signal);
      void enter(never).then((lane) => entered.push(lane));
      const left = new AbortController();
      const given = enter(left.signal);
      hurry.abort();
      left.abort(new Error("too late"));
      await expect(given).rejects.toThrow("too late");
      await clock.advance(millis(2999));
      expect(entered).toEqual([]);
      await clock.advance(millis(1));
      expect(entered).toEqual(["Now"]);
    },
  );

  it("keeps a Soon request at its pace, however long, while urgent requests end", async () => {
    const lanes = new RequestLanes(20, clock);
    crowd(lanes, "Now", 17);
    for (const urgency of ["Later", "Soon"] as const) {
      lanes.leave(await lanes.enter({ urgency }, never));
    }
    const soon = crowd(lanes, "Soon", 1);
    for (let ended = 0; ended < 11; ended += 1) {
      await clock.advance(seconds(2));
      crowd(lanes, "Now", 1);
      lanes.leave("Now");
    }
    await settle();
    expect(soon.count).toBe(0);
    lanes.leave("Now");
    await settle();
    expect(soon.count).toBe(1);
  });

  it("keeps the order of requests within a lane", async () => {
    const lanes = new RequestLanes(1, clock);
    const order: number[] = [];
    for (const name of [1, 2, 3])
      void lanes.enter({ urgency: "Now" }, never).then(() => order.push(name));
    await settle();
    lanes.leave("Now");
    await settle();
    lanes.leave("Now");
    await settle();
    expect(order).toEqual([1, 2, 3]);
  });

  it("admits requests without a due time first, then the earliest due, within a lane", async () => {
    const lanes = new RequestLanes(1, clock);
    const order: string[] = [];
    const asked = [
      ["in a minute", minutes(1)],
      ["in a second", seconds(1)],
      ["in a second too", seconds(1)],
      ["sometime", undefined],
    ] as const;
    crowd(lanes, "Now", 1);
    for (const [name, inMs] of asked) {
      const dueAt = inMs === undefined ? undefined : plus(now, inMs);
      void lanes.enter({ urgency: "Now", dueAt }, never).then(() => order.push(name));
    }
    for (const _ of asked) {
      lanes.leave("Now");
      await settle();
    }
    expect(order).toEqual(["sometime", "in a second", "in a second too", "in a minute"]);
  });

  it("keeps that order in a random crowd of which some give up", async () => {
    const rng = seededRng(7);
    const lanes = new RequestLanes(1, clock);
    crowd(lanes, "Now", 1);
    const entered: number[] = [];
    const crowded = Array.from({ length: 200 }, (_, place) => {
      const dueMs = Math.floor(rng() * 20);
      const stop = new AbortController();
      const dueAt = plus(now, millis(dueMs));
      void lanes
        .enter({ urgency: "Now", dueAt }, stop.signal)
        .then(() => entered.push(place))
        .catch(() => {});
      return { place, dueMs, stop };
    });
    const staying = crowded.filter(() => rng() < 0.5);
    for (const one of crowded) if (!staying.includes(one)) one.stop.abort();
    for (const _ of staying) {
      lanes.leave("Now");
      await settle();
    }
    const byDue = staying.toSorted((a, b) => a.dueMs - b.dueMs || a.place - b.place);
    expect(entered).toEqual(byDue.map(({ place }) => place));
  });

  it("rejects a request that gives up, which takes no place", async () => {
    const lanes = new RequestLanes(1, clock);
    const stop = new AbortController();
    crowd(lanes, "Now", 1);
    const given = lanes.enter({ urgency: "Now" }, stop.signal);
    const next = crowd(lanes, "Now", 1);
    stop.abort(new Error("too late"));
    await expect(given).rejects.toThrow("too late");
    lanes.leave("Now");
    await settle();
    expect(next.count).toBe(1);
  });
});
