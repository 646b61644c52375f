import { describe, expect, it } from "vitest";
import { readQueueMessage } from "../../../../src/cloud/aws/queue/queue-message.ts";
import { instant } from "../../../../src/core/time/time.ts";
import { directHook, launchAction, terminateAction } from "../../../support/queue-body.ts";

const about = { instanceId: "i-0123456789abcdef0", time: "2026-11-20T12:00:00Z" };
const hook = {
  ...{ machine: about.instanceId, group: "spot-asg", name: "drain" },
  ...{ token: "87654321-4321-4321-4321-210987654321", at: Date.UTC(2026, 10, 20, 12) },
};

describe("a lifecycle hook of a group", () => {
  it.each([
    ["Launching", "EC2", "AutoScalingGroup", {}],
    ["Launching", "EC2", "WarmPool", { inWarmPool: true }],
    ["Launching", "WarmPool", "AutoScalingGroup", {}],
    ["Launching", undefined, undefined, {}],
    ["Terminating", "AutoScalingGroup", "EC2", {}],
    ["Terminating", "WarmPool", "EC2", { inWarmPool: true }],
    ["Terminating", "AutoScalingGroup", "WarmPool", { returnsToWarmPool: true }],
    ["Terminating", undefined, undefined, {}],
  ])("(%s) from %s to %s is %j", (transition, Origin, Destination, pool) => {
    const direct = directHook(about, transition.toUpperCase());
    const event = transition === "Launching" ? launchAction(about) : terminateAction(about);
    const { detail } = event as { readonly detail: object };
    const ends = { Origin, Destination };
    for (const body of [
      { ...direct, ...ends },
      { ...event, detail: { ...detail, ...ends } },
    ]) {
      const at = instant(Date.UTC(2026, 10, 20, 12, 0, 3));
      const reading = readQueueMessage({ text: JSON.stringify(body), at });
      expect(reading).toHaveProperty("hook", { ...hook, transition, ...pool });
    }
  });
});
