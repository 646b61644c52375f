import { describe, expect, it } from "vitest";
import type { NodeFacts } from "../../../src/core/cluster/node.ts";
import type { PodFacts } from "../../../src/core/cluster/pod.ts";
import { freshMemory, type Memory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import type { EvaluationTime } from "../../../src/core/next/scene.ts";
import { pod } from "../drain/drain-scene.ts";
import { aScene, at, known, marked, policy, statusIn, timeAt } from "./departure-scene.ts";

const start: Memory = { ...freshMemory(timeAt(0, 1)), markedFor: "Planned undefined undefined" };
const minute = 60_000;

/** Asked to leave when the drain began, with a minute of grace. */
const leaving = pod("a", { graceSeconds: 60, deletionAt: at(minute) });

/** The API server's clock is ahead of what it was at first by so much. */
function steppedBy(stepMs: number, ms: number, number: number): EvaluationTime {
  return { ...timeAt(ms, number), at: at(ms + stepMs) };
}

/** Whether a drain of these pods has ended, looked at once more at each of these times. */
function drainAfter(
  pods: readonly PodFacts[],
  times: readonly EvaluationTime[],
  {
    first = pods,
    nodes = [marked()],
    from = timeAt(0, 1),
  }: {
    readonly first?: readonly PodFacts[];
    readonly nodes?: readonly NodeFacts[];
    readonly from?: EvaluationTime;
  } = {},
) {
  const sceneOf = (there: readonly PodFacts[], turn: number) => {
    const node = nodes[turn] ?? nodes.at(-1) ?? marked();
    return aScene({
      departure: { status: statusIn(["Preparing", "Draining"]) },
      node,
      policy,
      heardMs: times.at(-1)?.ms ?? 0,
      facts: {
        ...{ pods: known(there), budgets: known([]) },
        ...{ nodeNow: known({ node }), isLive: known(true) },
      },
    });
  };
  let memory = start;
  memory = next(sceneOf(first, 0), memory, from).memory;
  for (const [turn, time] of times.entries())
    memory = next(sceneOf(pods, turn + 1), memory, time).memory;
  return memory.drained === undefined ? "Running" : "Ended";
}

describe("a pod in its grace, while the clock of the API server is stepped", () => {
  it("is not taken for one that is stuck: two minutes or an hour ahead", () => {
    for (const stepMs of [2 * minute, 60 * minute]) {
      expect(drainAfter([leaving], [steppedBy(stepMs, 5000, 2)])).toBe("Running");
      // A minute after its grace it is stuck, by whatever clock.
      const late = [steppedBy(stepMs, 5000, 2), steppedBy(stepMs, 2 * minute + 1000, 3)];
      expect(drainAfter([leaving], late)).toBe("Ended");
    }
  });

  it("is stuck a minute after its grace, although the clock went back", () => {
    const back = (ms: number) => [steppedBy(-5 * minute, 5000, 2), steppedBy(-5 * minute, ms, 3)];
    expect(drainAfter([leaving], back(2 * minute - 1000))).toBe("Running");
    expect(drainAfter([leaving], back(2 * minute + 1000))).toBe("Ended");
  });

  it("has its whole grace if it was seen before, whatever another server's clock says", () => {
    const asked = { ...leaving, deletionGraceSeconds: 60 };
    const ahead = (ms: number) => [steppedBy(60 * minute, 1000, 2), steppedBy(60 * minute, ms, 3)];
    const alive = [pod("a", { graceSeconds: 60 })];
    expect(drainAfter([asked], ahead(2 * minute), { first: alive })).toBe("Running");
    expect(drainAfter([asked], ahead(2 * minute + 2000), { first: alive })).toBe("Ended");
  });

  it("has the end that the server writes anew, by the clock of then", () => {
    const shortened = { ...leaving, deletionAt: at(10_000) };
    expect(drainAfter([shortened], [timeAt(minute, 2)])).toBe("Running");
    expect(drainAfter([shortened], [timeAt(minute + 11_000, 2)])).toBe("Ended");
  });
});

describe("a pod whose kubelet was unreachable", () => {
  const asked = { ...leaving, deletionGraceSeconds: 60 };
  const silent = { ...marked(), ready: false, isUnreachable: true };
  const heardAgain = (readySince: number) => ({ ...marked(), readySince: at(readySince) });

  it("has its whole grace once the kubelet answers again", () => {
    const hour = 60 * minute;
    const times = (lastMs: number) => [timeAt(hour, 2), timeAt(hour + 1000, 3), timeAt(lastMs, 4)];
    const nodes = [silent, silent, heardAgain(hour), heardAgain(hour)];
    expect(drainAfter([asked], times(hour + minute), { nodes })).toBe("Running");
    expect(drainAfter([asked], times(hour + 2 * minute + 2000), { nodes })).toBe("Ended");
  });

  it("has it too if another leader saw the silence, by the node's condition", () => {
    const about = { nodes: [heardAgain(10 * minute)], from: timeAt(10 * minute, 1) };
    expect(drainAfter([asked], [timeAt(11 * minute, 2)], about)).toBe("Running");
    expect(drainAfter([asked], [timeAt(12 * minute + 1, 2)], about)).toBe("Ended");
  });

  it("is not waited for longer because the kubelet's clock is ahead", () => {
    const nodes = [heardAgain(600 * minute)];
    expect(drainAfter([asked], [timeAt(3 * minute, 2)], { nodes })).toBe("Ended");
  });
});
