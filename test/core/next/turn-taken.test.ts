import { expect, it } from "vitest";
import { freshMemory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import { budget, pod } from "../drain/drain-scene.ts";
import { aScene, checked, known, statusIn, timeAt } from "./departure-scene.ts";

const apps = ["web", "db"];
const demands = apps.map((app) => {
  return { budget: `default/${app}`, pods: 1, disruptionsAllowed: 1 };
});
const other = { name: "n2-1", demands };
const selecting = (app: string) => ({ selector: { matchLabels: { app } } });
const budgets = apps.map((app) => budget(app, selecting(app)));
const pods = apps.flatMap((app) =>
  ["a", "b"].map((name) => pod(`${app}-${name}`, { labels: { app } })),
);

function sceneAt(drains: readonly (typeof other)[], number: number) {
  const facts = {
    ...checked(),
    podsNow: known(pods, number),
    budgets: known(budgets, number),
  };
  const departure = { status: statusIn(["Preparing"]) };
  return aScene({ departure, facts, drains: () => drains });
}

it("a turn is taken by pods and budgets that were read after the other drain has ended", () => {
  const waiting = next(sceneAt([other], 1), freshMemory(timeAt(0, 1)), timeAt(100, 2));
  expect(waiting.status.reason).toBe("ConflictWait");
  const ended = next(sceneAt([], 1), waiting.memory, timeAt(30_000, 3));
  expect(ended.requests).toEqual([]);
  const since = ended.needs.filter(({ name }) => name === "podsNow").map((need) => need.since);
  expect(Math.max(...since)).toBe(3);
  const read = next(sceneAt([], 3), ended.memory, timeAt(30_050, 5));
  expect(read.memory.hasTurn).toBe(true);
});
