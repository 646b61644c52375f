import type { ActionOf } from "../../src/core/policy/action.ts";
import { FakeActionRunner } from "../support/fake-action-runner.ts";
import { actionRunnerContract } from "./action-runner.contract.ts";

const how: ActionOf<"deregisterTargets"> = { kind: "deregisterTargets", wait: false };

actionRunnerContract("the fake runner", async () => {
  const runner = new FakeActionRunner();
  return {
    runner,
    how,
    sort: "Undoable",
    secrets: [],
    state: () => runner.inEffect,
    fail: (fault) => {
      runner.fault = fault === "Unreachable" ? "ACTION_UNREACHABLE" : "ACTION_RIGHT_MISSING";
    },
    heal: () => {
      runner.fault = undefined;
    },
    close: async () => {},
  };
});
