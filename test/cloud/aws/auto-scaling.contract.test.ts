import { expect, it } from "vitest";
import { AutoScaling } from "../../../src/cloud/aws/auto-scaling.ts";
import type { LifecycleHook } from "../../../src/core/notice/instance-notice.ts";
import { hours, instant, seconds } from "../../../src/core/time/time.ts";
import { lifecycleHooksContract } from "../../contract/lifecycle-hooks.contract.ts";
import { AutoScalingServer } from "../../support/auto-scaling-server.ts";
import { useAwsEnvironment } from "../../support/aws-environment.ts";

useAwsEnvironment();

lifecycleHooksContract("the AWS SDK client for Auto Scaling", async () => {
  const server = await new AutoScalingServer().start();
  process.env.AWS_ENDPOINT_URL_AUTO_SCALING = server.url;
  return {
    hooks: new AutoScaling({ region: "eu-west-1" }),
    hold: (hook) => server.hold(hook),
    wait: (limits) => {
      server.waits = limits;
    },
    told: () => server.told,
    fail: (fault) => {
      server.fault = fault;
    },
    heal: () => {
      server.fault = undefined;
    },
    close: () => server.stop(),
  };
});

it.each([
  ["100 times its heartbeat", seconds(30), seconds(3000)],
  ["48 hours", hours(2), hours(48)],
])(
  "a hook whose longest wait AWS does not report waits for at most %s",
  async (_, heartbeatMs, longestMs) => {
    const server = await new AutoScalingServer().start();
    process.env.AWS_ENDPOINT_URL_AUTO_SCALING = server.url;
    const hook: LifecycleHook = {
      ...{ machine: "i-0abc", group: "spot", name: "drain", at: instant(0) },
      transition: "Terminating",
    };
    server.hold(hook);
    server.waits = { heartbeatMs, longestMs: hours(1) };
    server.tellsLongest = false;
    const hooks = new AutoScaling({ region: "eu-west-1" });
    const limits = await hooks.limits(hook, new AbortController().signal);
    expect(limits).toEqual({ heartbeatMs, longestMs });
    await server.stop();
  },
);
