import { describe, expect, it } from "vitest";
import type { Urgency } from "../../src/contracts/kube-api.ts";
import { RequestLanes } from "../../src/kube/request-lanes.ts";

const never = new AbortController().signal;

/** Asks for so many at once and tells, whenever asked, how many have been let in. */
function crowd(lanes: RequestLanes, urgency: Urgency, count: number) {
  const entered = { count: 0 };
  for (let index = 0; index < count; index += 1) {
    void lanes.enter(urgency, never).then(() => {
      entered.count += 1;
    });
  }
  return entered;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

describe("request lanes", () => {
  it("let in as many as there is room for, whoever asks", async () => {
    const lanes = new RequestLanes(8);
    const later = crowd(lanes, "Later", 20);
    await settle();
    expect(later.count).toBe(8);
  });

  it("let four of Later in while one of Now is under way", async () => {
    const lanes = new RequestLanes(64);
    const now = crowd(lanes, "Now", 1);
    const later = crowd(lanes, "Later", 20);
    await settle();
    expect([now.count, later.count]).toEqual([1, 4]);
  });

  it("let eight of Now in, evictions such as these, while a cordon is under way", async () => {
    const lanes = new RequestLanes(64);
    const first = crowd(lanes, "First", 20);
    const now = crowd(lanes, "Now", 20);
    const later = crowd(lanes, "Later", 20);
    await settle();
    expect([first.count, now.count, later.count]).toEqual([20, 8, 4]);
  });

  it("let the rest of Later in as soon as the last of Now has left", async () => {
    const lanes = new RequestLanes(64);
    crowd(lanes, "Now", 1);
    const later = crowd(lanes, "Later", 20);
    await settle();
    lanes.leave("Now");
    await settle();
    expect(later.count).toBe(20);
  });

  it("give a place that gets free to one of Now, though Later asked before", async () => {
    const lanes = new RequestLanes(2);
    crowd(lanes, "Later", 2);
    const later = crowd(lanes, "Later", 1);
    const now = crowd(lanes, "Now", 1);
    await settle();
    lanes.leave("Later");
    await settle();
    expect([now.count, later.count]).toEqual([1, 0]);
  });

  it("keep the order within a lane", async () => {
    const lanes = new RequestLanes(1);
    const order: number[] = [];
    for (const name of [1, 2, 3]) void lanes.enter("Now", never).then(() => order.push(name));
    await settle();
    lanes.leave("Now");
    await settle();
    lanes.leave("Now");
    await settle();
    expect(order).toEqual([1, 2, 3]);
  });

  it("reject who gives up waiting, and take up no room for them", async () => {
    const lanes = new RequestLanes(1);
    const stop = new AbortController();
    crowd(lanes, "Now", 1);
    const given = lanes.enter("Now", stop.signal);
    const next = crowd(lanes, "Now", 1);
    stop.abort(new Error("too late"));
    await expect(given).rejects.toThrow("too late");
    lanes.leave("Now");
    await settle();
    expect(next.count).toBe(1);
  });
});
