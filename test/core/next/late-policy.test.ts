import { expect, it } from "vitest";
import { freshMemory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import { defaultPolicy } from "../../../src/core/policy/policy.ts";
import { pod } from "../drain/drain-scene.ts";
import { aPolicy } from "../fleet-builder.ts";
import { aScene, at, known, marked, policy, statusIn, theNode, timeAt } from "./departure-scene.ts";

const own = aPolicy({ ...policy, drain: { ...policy.drain, onSingleReplica: "RestartOwner" } });

it("a drain that began before its policy was known goes on by the policy's rule", () => {
  const notice = { cause: "SpotInterruption", noticedAt: at(0), deadlineAt: at(120_000) } as const;
  const departure = { ...notice, status: statusIn(["Preparing", "Draining"]) };
  const facts = {
    nodeNow: known({ node: theNode }, 9),
    pods: known([pod("a")], 9),
    budgets: known([], 9),
  };
  const before = aScene({ departure, node: marked(), facts, policy: defaultPolicy });
  const begun = next(before, freshMemory(timeAt(0, 1)), timeAt(2000, 2));
  const after = next({ ...before, policy: own }, begun.memory, timeAt(2100, 3));
  expect(after.memory.drain?.rule.onSingleReplica).toBe("RestartOwner");
  const keysOf = ({ requests }: typeof begun) => requests.map(({ key }) => key);
  expect(keysOf(after).filter((key) => key.startsWith("pod "))).toEqual(
    keysOf(begun).filter((key) => key.startsWith("pod ")),
  );
});
