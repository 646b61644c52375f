import { expect, it } from "vitest";
import { TakenNames } from "../../src/controller/taken-names.ts";
import { millis } from "../../src/core/time/time.ts";
import { ManualClock } from "../support/manual-clock.ts";

it.each([
  { answer: "Exists" as const, times: 2, what: "is tried again after ten seconds" },
  { answer: "Made" as const, times: 25, what: "does not rest: its departure may be deleted" },
])("a name that is answered with $answer $what", async ({ answer, times }) => {
  const clock = new ManualClock();
  const names = new TakenNames(clock);
  let asked = 0;
  const create = async () => {
    asked += 1;
    return answer;
  };
  // Five passes a second, for five seconds and one more after ten.
  for (let pass = 0; pass < 24; pass += 1) {
    await names.whileFree("n1-2aef1bf2", create);
    await clock.advance(millis(200));
  }
  await clock.advance(millis(6000));
  await names.whileFree("n1-2aef1bf2", create);
  expect(asked).toBe(times);
});
