import { expect, it } from "vitest";
import { freshMemory, type Memory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import { pod } from "../drain/drain-scene.ts";
import { aScene, at, known, marked, statusIn, theNode, timeAt } from "./departure-scene.ts";

it("a pod that was bound late does not wait for the check of one that was bound later", () => {
  const notice = { cause: "SpotInterruption", noticedAt: at(0), deadlineAt: at(120_000) } as const;
  const departure = { ...notice, status: statusIn(["Preparing", "Draining"]) };
  const node = marked();
  const withPods = (pods: string[], number: number) => {
    const facts = {
      ...{ nodeNow: known({ node: theNode }, number), isLive: known(true, number) },
      ...{
        pods: known(
          pods.map((name) => pod(name)),
          9,
        ),
        budgets: known([], 9),
      },
    };
    return aScene({ departure, node, facts });
  };
  const evaluated = (memory: Memory, pods: string[], about: { read: number; number: number }) =>
    next(withPods(pods, about.read), memory, timeAt(2000 + about.number, about.number));
  const started = evaluated(freshMemory(timeAt(0, 1)), ["a"], { read: 1, number: 2 });
  const one = evaluated(started.memory, ["a", "b"], { read: 1, number: 3 });
  const other = evaluated(one.memory, ["a", "b", "c"], { read: 1, number: 4 });
  // The read that the evaluation 3 asked for.
  const answered = evaluated(other.memory, ["a", "b", "c"], { read: 3, number: 5 });
  const evicted = answered.requests.flatMap((request) =>
    request.kind === "Pod" ? [request.act.pod.name] : [],
  );
  expect(evicted).toEqual(["a", "b"]);
  const since = Math.max(
    ...answered.needs.filter(({ name }) => name === "nodeNow").map((need) => need.since),
  );
  expect(since).toBe(4);
  const all = evaluated(answered.memory, ["a", "b", "c"], { read: 5, number: 6 });
  expect(all.memory.own).toEqual(["uid-a", "uid-b", "uid-c"]);
});
