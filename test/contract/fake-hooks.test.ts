import { FakeHooks } from "../support/fake-hooks.ts";
import { lifecycleHooksContract } from "./lifecycle-hooks.contract.ts";

const codes = {
  Unreachable: "CLOUD_UNREACHABLE",
  RateLimited: "CLOUD_RATE_LIMITED",
  RightMissing: "CLOUD_RIGHT_MISSING",
} as const;

lifecycleHooksContract("the in-memory Auto Scaling groups", async () => {
  const hooks = new FakeHooks();
  return {
    hooks,
    hold: (hook) => hooks.hold(hook),
    wait: (limits) => {
      hooks.waits = limits;
    },
    told: () => hooks.told,
    fail: (fault) => {
      hooks.fault = codes[fault];
    },
    heal: () => {
      hooks.fault = undefined;
    },
    close: async () => {},
  };
});
