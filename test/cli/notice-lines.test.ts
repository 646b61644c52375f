import { describe, expect, it } from "vitest";
import type { BoardNotice } from "../../src/board/demo-picture.ts";
import { plainText } from "../../src/cli/command-line/terminal.ts";
import { noticeLines } from "../../src/cli/demo/notice-lines.ts";
import { instant, plus, seconds } from "../../src/core/time/time.ts";

const noticedAt = instant(0);
const now = plus(noticedAt, seconds(30));
const notice: BoardNotice = {
  ...{ node: "spot-1", noticedAt, deadlineAt: plus(noticedAt, seconds(120)) },
  twinPods: ["gone", "late", "waits"].map((name) => ({ name })),
  pods: [
    { name: "gone", terminatingAt: noticedAt, endedAt: plus(noticedAt, seconds(15)) },
    { name: "late", terminatingAt: plus(noticedAt, seconds(15)) },
    { name: "waits" },
  ],
};

/** 64 columns leave the shortest bar: 8 columns for 120 seconds. */
function textOf(shown: BoardNotice, rows: number): readonly string[] {
  return noticeLines(shown, { now, columns: 64, rows }).map(plainText);
}

describe("A notice", () => {
  it("is shown pod by pod on a time bar, with what happens without Lastcall", () => {
    expect(textOf(notice, 10)).toEqual([
      " NOTICE  spot-1 shuts down in 90 s   1 of 3 pods terminated",
      // 15 seconds are one of eight columns.
      "   gone   █·······  terminated after 15s",
      "   late   ·█······  terminating for 15s",
      "   waits  ········  running",
      "   without Lastcall: 3 pods keep running, unaware of the notice",
    ]);
  });

  it("on 40 columns shortens a pod's name rather than its state", () => {
    const long = { name: "worker-1bgyuuz-qhffw", terminatingAt: noticedAt };
    const pods = [...notice.pods, long];
    const lines = noticeLines({ ...notice, pods }, { now, columns: 40, rows: 10 }).map(plainText);
    expect(lines).toContain("   worker-1bgyuuz…  terminating for 30s");
    expect(lines).toContain("   gone             terminated after 15s");
  });

  it("lists pods that have not terminated first if not all pods fit", () => {
    const [, first, second, ...rest] = textOf(notice, 4);
    expect([first, second]).toEqual(["   late   ·█······  terminating for 15s", "   and 2 more"]);
    expect(rest).toHaveLength(1);
  });

  it("omits the fleet without Lastcall if the cloud does not interrupt its machine", () => {
    expect(textOf({ ...notice, twinPods: undefined }, 10).join("\n")).not.toContain("without");
  });

  it.each<[string, Partial<BoardNotice>, string]>([
    ["is gone", { goneAt: now }, "spot-1 is gone   1 of 3 pods terminated"],
    ["had no pods", { pods: [] }, "no pods"],
    [
      "has a twin that is shutting down",
      { twinPods: [{ name: "web", terminatingAt: now }] },
      "without Lastcall: the shutdown terminates its pods, with 15 s for all of them",
    ],
    [
      "has a twin whose pods were killed",
      { twinPods: [{ name: "web", terminatingAt: now, endedAt: now, isKilled: true }] },
      "without Lastcall: 1 of 1 pod killed",
    ],
    ["has a twin without pods", { twinPods: [] }, "without Lastcall: no pods"],
    [
      "has a twin with one pod",
      { twinPods: [{ name: "web" }] },
      "without Lastcall: 1 pod keeps running, unaware of the notice",
    ],
    [
      "has a twin whose pods had exited on their own",
      { goneAt: now, twinPods: [{ name: "web", terminatingAt: noticedAt, endedAt: now }] },
      "without Lastcall: no pod killed",
    ],
    ["killed a pod", { pods: [{ name: "web", isKilled: true }] }, "  killed"],
  ])("describes a machine that %s", (_, more, text) => {
    expect(textOf({ ...notice, ...more }, 10).join("\n")).toContain(text);
  });

  it("says that the machine is shutting down once its deadline has passed", () => {
    const [head] = textOf({ ...notice, deadlineAt: now }, 10);
    expect(head).toContain("spot-1 is shutting down");
  });
});
