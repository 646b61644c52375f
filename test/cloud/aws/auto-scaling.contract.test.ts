import { afterAll, beforeAll } from "vitest";
import { AutoScaling } from "../../../src/cloud/aws/auto-scaling.ts";
import { lifecycleHooksContract } from "../../contract/lifecycle-hooks.contract.ts";
import { AutoScalingServer } from "../../support/auto-scaling-server.ts";

const former = { ...process.env };

beforeAll(() => {
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" });
});
afterAll(() => {
  process.env = former;
});

lifecycleHooksContract("AWS' client of Auto Scaling", async () => {
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
