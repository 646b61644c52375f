import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  activeNotice,
  emptyNoticeState,
  mergeNotices,
  type Notice,
  type NoticeState,
  nextChangeAt,
  readInto,
} from "../../../src/core/notice/notice.ts";
import { hours, instant, plus, seconds } from "../../../src/core/time/time.ts";

const nowAt = instant(Date.UTC(2026, 10, 20, 12));

function notice(fields: Partial<Notice>): Notice {
  return { cause: "SpotInterruption", noticedAt: nowAt, source: "aws/x", eventId: "e1", ...fields };
}

function atSecond(span: number) {
  return instant(nowAt + span * 1000);
}

function read(
  state: NoticeState,
  fields: {
    readonly notices: readonly Notice[];
    readonly second: number;
    readonly channel?: string;
    readonly problems?: readonly string[];
  },
): NoticeState {
  const { notices, second, channel = "a", problems = [] } = fields;
  const reading = { kind: "Read", notices, ignored: [], problems } as const;
  return readInto(state, { channel, reading, at: atSecond(second) });
}

describe("several notices for one machine", () => {
  it("merge to nothing if there are none", () => {
    expect(mergeNotices([])).toBeUndefined();
  });

  it("merge into one with the earliest deadline, and its cause", () => {
    const merged = mergeNotices([
      notice({ cause: "ScheduledMaintenance", eventId: "m", deadlineAt: atSecond(600) }),
      notice({
        cause: "SpotInterruption",
        eventId: "s",
        deadlineAt: atSecond(120),
        source: "aws/s",
      }),
      notice({ cause: "RebalanceRecommendation", eventId: "r" }),
    ]);
    expect(merged).toEqual({
      cause: "SpotInterruption",
      deadlineAt: atSecond(120),
      noticedAt: nowAt,
      source: "aws/s",
      eventIds: ["m", "r", "s"],
    });
  });

  it("have the cause that makes the node leave, whatever else a policy may ignore", () => {
    const hook = notice({ cause: "LifecycleHook", eventId: "h", noticedAt: atSecond(60) });
    const rebalance = notice({ cause: "RebalanceRecommendation", eventId: "r" });
    expect(mergeNotices([rebalance, hook])).toMatchObject({
      cause: "LifecycleHook",
      noticedAt: atSecond(60),
    });
    const work = notice({ cause: "ScheduledMaintenance", eventId: "m", deadlineAt: atSecond(90) });
    expect(mergeNotices([work, hook])).toMatchObject({
      cause: "LifecycleHook",
      deadlineAt: atSecond(90),
    });
  });

  it("leave out those that the cloud withdrew", () => {
    const off = notice({ eventId: "s", deadlineAt: atSecond(120), withdrawn: true });
    expect(mergeNotices([off])).toBeUndefined();
    const rebalance = notice({ cause: "RebalanceRecommendation", eventId: "r" });
    expect(mergeNotices([off, rebalance])?.cause).toBe("RebalanceRecommendation");
  });

  it("merge to the same result in any order", () => {
    const notices = fc.array(
      fc.record({
        cause: fc.constantFrom("SpotInterruption", "RebalanceRecommendation", "LifecycleHook"),
        eventId: fc.constantFrom("a", "b", "c", "d"),
        noticedAt: fc.integer({ min: 0, max: 5 }).map(atSecond),
        deadlineAt: fc.option(fc.integer({ min: 0, max: 9 }).map(atSecond), { nil: undefined }),
        source: fc.constant("x"),
      }),
      { maxLength: 6 },
    );
    const differentIds = notices.filter(
      (all) => new Set(all.map((one) => one.eventId)).size === all.length,
    );
    fc.assert(
      fc.property(differentIds, (all) => {
        expect(mergeNotices(all.toReversed())).toEqual(mergeNotices(all));
        const deadlines = all.flatMap((one) => one.deadlineAt ?? []);
        const earliest = deadlines.length > 0 ? Math.min(...deadlines) : undefined;
        expect(mergeNotices(all)?.deadlineAt).toBe(earliest);
      }),
      { seed: 6, numRuns: 500 },
    );
  });
});

describe("the notice state", () => {
  const spot = notice({ eventId: "s", deadlineAt: atSecond(120) });

  it("keeps when a notice was first seen, and never moves its deadline later", () => {
    let state = read(emptyNoticeState, { notices: [spot], second: 0 });
    const again = { ...spot, noticedAt: atSecond(5), deadlineAt: atSecond(130) };
    state = read(state, { notices: [again], second: 5 });
    expect(activeNotice(state, atSecond(5))).toMatchObject({
      noticedAt: nowAt,
      deadlineAt: atSecond(120),
    });
    state = read(state, { notices: [{ ...again, deadlineAt: atSecond(60) }], second: 6 });
    expect(activeNotice(state, atSecond(6))?.deadlineAt).toBe(atSecond(60));
  });

  it("does not drop a notice for a single response without it", () => {
    let state = read(emptyNoticeState, { notices: [spot], second: 0 });
    state = read(state, { notices: [], second: 1 });
    expect(activeNotice(state, atSecond(1))).toBeDefined();
    state = read(state, { notices: [spot], second: 2 });
    state = read(state, { notices: [], second: 11.9 });
    // Missing again, since 11.9 s.
    expect(activeNotice(state, atSecond(11.9))).toBeDefined();
  });

  it("drops a notice once its channel has not reported it for ten seconds", () => {
    let state = read(emptyNoticeState, { notices: [spot], second: 0 });
    state = read(state, { notices: [], second: 3 });
    state = read(state, { notices: [], second: 12.9 });
    expect(activeNotice(state, atSecond(12.9))).toBeDefined();
    state = read(state, { notices: [], second: 13 });
    expect(activeNotice(state, atSecond(13))).toBeUndefined();
  });

  it("keeps a notice while its channel is silent, however long", () => {
    let state = read(emptyNoticeState, { notices: [spot], second: 0 });
    state = read(state, { notices: [], second: 1 });
    expect(activeNotice(state, atSecond(3600))).toBeDefined();
  });

  it("keeps a notice that may be among entries that could not be read", () => {
    let state = read(emptyNoticeState, { notices: [spot], second: 0 });
    for (const second of [1, 20, 40]) {
      state = read(state, { notices: [], second, problems: ["one entry is garbage"] });
    }
    expect(activeNotice(state, atSecond(40))).toBeDefined();
  });

  it("does not let one channel drop another channel's notice", () => {
    let state = read(emptyNoticeState, { notices: [spot], second: 0, channel: "a" });
    for (const second of [1, 20, 40]) state = read(state, { notices: [], second, channel: "b" });
    expect(activeNotice(state, atSecond(40))).toBeDefined();
  });

  it("drops a notice at once when the cloud withdraws it", () => {
    let state = read(emptyNoticeState, { notices: [spot], second: 0 });
    state = read(state, { notices: [{ ...spot, withdrawn: true }], second: 1 });
    expect(activeNotice(state, atSecond(1))).toBeUndefined();
  });

  it("keeps one notice if a response contains it twice", () => {
    const state = read(emptyNoticeState, { notices: [spot, spot], second: 0 });
    expect(state.held).toHaveLength(1);
  });

  it("does not grow with notices that come and go", () => {
    let state = emptyNoticeState;
    for (let turn = 0; turn < 1000; turn += 1) {
      const passing = notice({ eventId: `event-${turn}`, deadlineAt: atSecond(120) });
      state = read(state, { notices: [passing], second: turn * 20 });
    }
    // The newest, and the one before it, missing for 0 s.
    expect(state.held).toHaveLength(2);
  });

  it("activates maintenance two hours before it starts, and says when", () => {
    const maintenanceAt = plus(nowAt, hours(3));
    const far = notice({ cause: "ScheduledMaintenance", eventId: "m", deadlineAt: maintenanceAt });
    const state = read(emptyNoticeState, { notices: [far], second: 0 });
    expect(activeNotice(state, nowAt)).toBeUndefined();
    const dueAt = plus(nowAt, hours(1));
    expect(nextChangeAt(state, nowAt)).toBe(dueAt);
    expect(activeNotice(state, instant(dueAt - 1))).toBeUndefined();
    expect(activeNotice(state, dueAt)).toMatchObject({ deadlineAt: maintenanceAt });
    expect(nextChangeAt(state, dueAt)).toBeUndefined();
  });

  it("drops a notice ten minutes after its deadline if another one remains", () => {
    const late = notice({ eventId: "l", deadlineAt: atSecond(900) });
    const state = read(emptyNoticeState, { notices: [spot, late], second: 0 });
    const outlivedAt = atSecond(120 + 600);
    expect(nextChangeAt(state, nowAt)).toBe(outlivedAt);
    expect(activeNotice(state, instant(outlivedAt - 1))).toMatchObject({
      deadlineAt: atSecond(120),
      eventIds: ["l", "s"],
    });
    const wanted = { deadlineAt: atSecond(900), eventIds: ["l"] };
    expect(activeNotice(state, outlivedAt)).toMatchObject(wanted);
    // The last one remains for as long as it is reported.
    expect(activeNotice(state, atSecond(7200))).toMatchObject(wanted);
  });

  it("keeps a notice past its deadline if all others were withdrawn", () => {
    const off = notice({ eventId: "o", deadlineAt: atSecond(9000), withdrawn: true });
    const state = read(emptyNoticeState, { notices: [spot, off], second: 0 });
    expect(activeNotice(state, atSecond(7200))).toMatchObject({ eventIds: ["s"] });
  });

  it("accepts a later deadline for an event once the machine has outlived the first", () => {
    const moved = { ...spot, noticedAt: atSecond(719), deadlineAt: atSecond(900) };
    const notices = [moved];
    let state = read(emptyNoticeState, { notices: [spot], second: 0 });
    state = read(state, { notices, second: 719 });
    expect(activeNotice(state, atSecond(719))?.deadlineAt).toBe(atSecond(120));
    state = read(state, { notices, second: 720 });
    expect(activeNotice(state, atSecond(720))?.deadlineAt).toBe(atSecond(900));
  });

  it("ignores a deadline that moves with each reading", () => {
    let state = read(emptyNoticeState, { notices: [spot], second: 0 });
    for (const second of [1, 718, 719, 720, 721, 5000]) {
      const again = { ...spot, noticedAt: atSecond(second), deadlineAt: atSecond(second + 120) };
      state = read(state, { notices: [again], second });
    }
    expect(activeNotice(state, atSecond(5000))?.deadlineAt).toBe(atSecond(120));
  });

  it("follows maintenance that is postponed before it is near", () => {
    const soon = notice({
      cause: "ScheduledMaintenance",
      eventId: "m",
      deadlineAt: plus(nowAt, hours(5)),
    });
    const putOff = { ...soon, deadlineAt: plus(nowAt, hours(50)) };
    let state = read(emptyNoticeState, { notices: [soon], second: 0 });
    for (const second of [60, 120]) state = read(state, { notices: [putOff], second });
    expect(activeNotice(state, plus(nowAt, hours(4)))).toBeUndefined();
    expect(activeNotice(state, plus(nowAt, hours(48)))).toMatchObject({
      deadlineAt: putOff.deadlineAt,
    });
  });

  it("activates maintenance at once if it starts within two hours", () => {
    const deadlineAt = plus(nowAt, seconds(60));
    const near = notice({ cause: "ScheduledMaintenance", eventId: "m", deadlineAt });
    const state = read(emptyNoticeState, { notices: [near], second: 0 });
    expect(activeNotice(state, nowAt)).toBeDefined();
  });
});
