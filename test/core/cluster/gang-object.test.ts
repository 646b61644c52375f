import { expect, it } from "vitest";
import {
  coschedulingPodGroup,
  leaderWorkerSet,
  volcanoJob,
  volcanoPodGroup,
} from "../../../src/core/cluster/gang-object.ts";

const restart = { event: "PodEvicted", action: "RestartJob" };

it.each<[string, object, boolean]>([
  ["if one is enough", { minAvailable: 1 }, true],
  ["not if two are needed", { minAvailable: 2 }, false],
  ["not if it says nothing", {}, false],
  ["not if it is set to the default", { minAvailable: 0 }, false],
  ["not if that is no number", { minAvailable: "1" }, false],
  ["not if the loss of one restarts all", { minAvailable: 1, policies: [restart] }, false],
  ["not if a task says so", { minAvailable: 1, tasks: [{ policies: [restart] }] }, false],
  [
    "not if one of several events says so",
    { minAvailable: 1, policies: [{ events: ["TaskCompleted", "*"], action: "AbortJob" }] },
    false,
  ],
  [
    "not if an exit code says so",
    { minAvailable: 1, policies: [{ exitCode: 137, action: "TerminateJob" }] },
    false,
  ],
  [
    "not if an unknown action follows",
    { minAvailable: 1, policies: [{ event: "PodFailed", action: "RestartPartition" }] },
    false,
  ],
  [
    "if only that pod is restarted",
    { minAvailable: 1, policies: [{ event: "PodFailed", action: "RestartPod" }] },
    true,
  ],
  [
    "if it ends when a task is complete",
    { minAvailable: 1, tasks: [{ policies: [{ event: "TaskCompleted", action: "CompleteJob" }] }] },
    true,
  ],
  ["if its policies cannot be read", { minAvailable: 1, policies: "none", tasks: {} }, true],
])("a Volcano Job goes on without a pod %s", (_, spec, expected) => {
  expect(volcanoJob.goesOn({ ...spec })).toBe(expected);
});

it.each<[string | undefined, boolean]>([
  ["None", true],
  // The deprecated name of None.
  ["Default", true],
  ["RecreateGroupOnPodRestart", false],
  ["RecreateGroupAfterStart", false],
  [undefined, false],
])("a LeaderWorkerSet with the restart policy %s goes on without a pod: %s", (policy, expected) => {
  const leaderWorkerTemplate = { restartPolicy: policy, size: 4 };
  expect(leaderWorkerSet.goesOn({ leaderWorkerTemplate })).toBe(expected);
  expect(leaderWorkerSet.goesOn({ restartPolicy: policy })).toBe(false);
});

it.each<[unknown, boolean]>([
  [1, true],
  [2, false],
  [0, false],
  [undefined, false],
  ["1", false],
])("a pod group with minMember %j goes on without a pod: %s", (minMember, expected) => {
  expect(volcanoPodGroup.goesOn({ minMember })).toBe(expected);
  expect(coschedulingPodGroup.goesOn({ minMember })).toBe(expected);
});
