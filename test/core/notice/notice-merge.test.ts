import { describe, expect, it } from "vitest";
import { noticeUpdate } from "../../../src/core/notice/notice.ts";
import { instant, plus, seconds } from "../../../src/core/time/time.ts";

const nowAt = instant(Date.UTC(2026, 10, 20, 12));
const nearAt = plus(nowAt, seconds(60));
const farAt = plus(nowAt, seconds(120));

describe("a notice for a departure that already has one", () => {
  const known = {
    cause: "SpotInterruption",
    source: "aws/queue/spot/e1",
    noticedAt: nowAt,
    deadlineAt: farAt,
  } as const;
  const told = { noticedAt: plus(nowAt, seconds(5)), source: "agent/aws/x" } as const;

  it("brings the deadline forward, and keeps the known cause and source", () => {
    const update = noticeUpdate(known, { ...told, cause: "LifecycleHook", deadlineAt: nearAt });
    const { source } = known;
    expect(update).toEqual({ noticedAt: nowAt, deadlineAt: nearAt, source, cause: undefined });
  });

  it("names a more serious cause, and keeps an earlier deadline", () => {
    const advised = { ...known, cause: "ScheduledMaintenance", deadlineAt: nearAt } as const;
    const update = noticeUpdate(advised, { ...told, cause: "SpotInterruption", deadlineAt: farAt });
    const wanted = { noticedAt: nowAt, deadlineAt: nearAt, cause: "SpotInterruption" };
    expect(update).toEqual({ ...wanted, source: told.source });
  });

  it.each([
    ["a later deadline", { deadlineAt: plus(farAt, seconds(60)) }],
    ["no deadline", {}],
    ["a less severe cause", { cause: "RebalanceRecommendation" }],
  ] as const)("changes nothing with %s", (_, fields) => {
    const again = { ...told, cause: "SpotInterruption", ...fields } as const;
    expect(noticeUpdate(known, again)).toBeUndefined();
  });
});

describe("a cloud notice for a departure made from a node's mark", () => {
  const marked = {
    cause: "NodeShutdown",
    source: "node/Ready/shutdown-b",
    noticedAt: nowAt,
  } as const;
  const told = { noticedAt: plus(nowAt, seconds(5)), source: "agent/aws/x" } as const;

  it.each([
    ["with a deadline", { cause: "SpotInterruption", deadlineAt: farAt }],
    ["without one", { cause: "SpotInterruption" }],
  ] as const)(
    "becomes its source, %s: the machine goes even if the mark is removed",
    (_, fields) => {
      const update = noticeUpdate(marked, { ...told, ...fields });
      expect(update).toMatchObject({ ...fields, noticedAt: nowAt, source: told.source });
    },
  );

  it("does not become its source if it is only a recommendation", () => {
    const update = noticeUpdate(marked, { ...told, cause: "RebalanceRecommendation" });
    expect(update).toBeUndefined();
  });

  it("is not replaced by another mark", () => {
    const known = { ...marked, cause: "SpotInterruption", source: "agent/aws/x" } as const;
    const mark = { ...told, cause: "NodeShutdown", source: "node/Ready/shutdown-b" } as const;
    expect(noticeUpdate(known, mark)).toBeUndefined();
  });
});

describe("the first notice for a departure", () => {
  it("is recorded even if nothing else changes, so that the departure counts as noticed", () => {
    const byHand = { cause: "SpotInterruption", deadlineAt: nearAt } as const;
    const told = { noticedAt: nowAt, cause: "SpotInterruption", source: "agent/aws/x" } as const;
    const wanted = { noticedAt: nowAt, deadlineAt: nearAt, source: "agent/aws/x" };
    expect(noticeUpdate(byHand, told)).toMatchObject(wanted);
  });

  it("changes nothing for a planned one if it is a recommendation without a deadline", () => {
    const told = { noticedAt: nowAt, cause: "RebalanceRecommendation", source: "x" } as const;
    expect(noticeUpdate({ cause: "Planned" }, told)).toBeUndefined();
    expect(noticeUpdate({ cause: "Planned" }, { ...told, deadlineAt: nearAt })).toBeDefined();
  });
});
