import { describe, expect, it } from "vitest";
import { loadBalancersLeft, volumesDetached } from "../../../src/core/next/after-drain-steps.ts";
import { takenByOthers } from "../../../src/core/next/cloud-takes.ts";
import { Evaluation } from "../../../src/core/next/evaluation.ts";
import { freshMemory } from "../../../src/core/next/memory.ts";
import { minutes } from "../../../src/core/time/time.ts";
import { aPolicy } from "../fleet-builder.ts";
import { aScene, at, known, policy, statusIn, timeAt } from "./departure-scene.ts";

const delayMs = minutes(2);
const patient = aPolicy({
  ...policy,
  instance: { ...policy.instance, release: "Recreate", loadBalancerDelayMs: delayMs },
});
const draining = statusIn(["Preparing", "Draining"]);
const { rule } = { rule: policy.drain };

/** So long after the start of the phase, on a clock that was set back by an hour since. */
function setBack(ms: number): Evaluation {
  const attached = [{ name: "a", claim: "default/data", volume: "pv-1" }];
  const facts = { volumes: known(attached as never) };
  const scene = aScene({ departure: { status: draining }, policy: patient, facts });
  const drained = { verdict: "Done", endedAt: at(0), rule, volumes: "Some", staying: [] } as const;
  const memory = { ...freshMemory(timeAt(0, 1)), drained, emptyAt: at(0), emptyMs: 0 };
  return new Evaluation(scene, memory, { at: at(ms - 3_600_000), ms, number: 2 });
}

describe("a wait after the drain lasts no longer on a clock that was set back", () => {
  it("for load balancers", () => {
    const early = setBack(delayMs - 1);
    expect([loadBalancersLeft(early), early.lookAgainAt]).toEqual([
      ...["Wait", at(delayMs - 3_600_000)],
    ]);
    expect(loadBalancersLeft(setBack(delayMs))).toBeUndefined();
  });

  it("for volumes", () => {
    expect(volumesDetached(setBack(rule.timeoutMs - 1))).toBe("Wait");
    expect(volumesDetached(setBack(rule.timeoutMs))).toBeUndefined();
  });

  it("for somebody else who ends the machine", () => {
    const awaiting = (ms: number): Evaluation => {
      const others = { ...policy, instance: { ...policy.instance, release: "None" } } as const;
      const status = statusIn(["Preparing", "Draining", "Releasing"]);
      const scene = aScene({ departure: { status }, policy: aPolicy(others) });
      const memory = freshMemory(timeAt(0, 1));
      return new Evaluation(scene, memory, { at: at(ms - 3_600_000), ms, number: 2 });
    };
    const { awaitMachineMs } = policy.instance;
    const early = awaiting(awaitMachineMs - 1);
    expect([takenByOthers(early), early.lookAgainAt]).toEqual([
      ...["Wait", at(awaitMachineMs - 3_600_000)],
    ]);
    expect(takenByOthers(awaiting(awaitMachineMs))).toMatchObject({ reason: "MachineNotTaken" });
  });
});
