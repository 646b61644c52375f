import { describe, expect, it } from "vitest";
import { plus, seconds } from "../../../src/core/time/time.ts";
import { departure, inShort, now, spot, world } from "../decide-scene.ts";

describe("a held departure", () => {
  it.each([
    ["pod", "BlockingPod", "n1 waits for the blocking pod shop/batch-0."],
    ["alert", "AlertsFiring", "n1 waits, because alerts are firing: ClusterDown."],
  ] as const)("names the %s that holds it now, and not one that is gone", (_, reason, message) => {
    const held = departure({
      departAt: plus(now, seconds(-30)),
      status: { phase: "Held", reason, message, timeline: [] },
    });
    const gates = {
      blockingPods: reason === "BlockingPod" ? [{ matchLabels: {}, matchExpressions: [] }] : [],
      ...(reason === "AlertsFiring" && { alerts: { url: "http://alerts:9093", matchers: [] } }),
    };
    const notes = (pod: string, alert: string) => {
      const answer = { blockingPods: new Map([["n1", pod]]), alerts: [alert], gangs: new Map() };
      const gateAnswers = { spot: answer };
      const policies = [{ ...spot, gates }];
      return inShort(world({ departures: [held], policies, gateAnswers })).filter((one) =>
        one.startsWith("Note"),
      );
    };
    expect(notes("shop/batch-0", "ClusterDown")).toEqual([]);
    expect(notes("shop/batch-1", "DiskFull")).toEqual([`Note Unblocked: ${reason}`]);
  });
});
