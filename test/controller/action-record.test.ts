import { expect, it } from "vitest";
import type { PreparedTask } from "../../src/contracts/action-runner.ts";
import { carryOut } from "../../src/controller/action/action-attempt.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import type { Fields } from "../../src/core/json/json-field.ts";
import type { Action } from "../../src/core/policy/action.ts";
import { seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { aTask } from "../contract/action-runner.contract.ts";
import { FakeActionRunner } from "../support/fake-action-runner.ts";
import { ManualClock } from "../support/manual-clock.ts";

const how = { kind: "deregisterTargets", wait: false } as const;
const action: Action = {
  ...{ name: "act", at: "AtNotice", timeoutMs: seconds(30), retries: 2, required: false, how },
};

it("the next attempt of an action starts from the last record that was written", async () => {
  const clock = new ManualClock();
  const runner = new FakeActionRunner();
  const records: (Fields | undefined)[] = [];
  const more = { targets: ["known", "found later"] };
  runner.apply = async ({ undo, keep }: PreparedTask) => {
    records.push(undo);
    await keep?.(more);
    if (records.length > 2) return { detail: "done" };
    throw new LastcallError("CLOUD_UNREACHABLE", "Cannot deregister: a test has it fail");
  };
  const kept: Fields[] = [];
  let refused = 1;
  const running = carryOut(action, aTask(how), {
    ...{ clock, rng: seededRng(1), runner, signal: new AbortController().signal },
    deadlineAt: () => undefined,
    keep: async (undo) => {
      if (undo === more && refused > 0) {
        refused -= 1;
        throw new LastcallError("API_UNREACHABLE", "Cannot write the record: a test has it fail");
      }
      kept.push(undo);
    },
  });
  await clock.advance(60_000);
  expect((await running).kind).toBe("Done");
  const first = { key: aTask(how).key, before: "nothing" };
  expect(records).toEqual([first, first, more]);
  expect(kept).toEqual([first, more, more]);
});
