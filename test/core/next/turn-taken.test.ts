import { expect, it } from "vitest";
import { statusAfter } from "../../../src/core/departure/ledger.ts";
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

const fresh = freshMemory(timeAt(0, 1));

it("a departure whose drain would complete a cycle is held with what its drain needs", () => {
  const { status, requests } = next(sceneAt([other], 1), fresh, timeAt(100, 2));
  expect(requests).toEqual([]);
  expect(status).toMatchObject({ phase: "Held", reason: "ConflictWait", startedAt: undefined });
  expect(status.message).toContain("n2-1, over default/db and default/web");
  expect(status.demands?.map(({ budget }) => budget)).toEqual(["default/db", "default/web"]);
});

it("a departure that starts again looks again, whatever it was held by", () => {
  const held = next(sceneAt([other], 1), fresh, timeAt(100, 2)).status;
  const change = { event: "Due", reason: "Spaced", at: timeAt(200, 3).at } as const;
  const started = statusAfter({ ...aScene({}).departure, status: held }, change);
  expect(started).toMatchObject({ phase: "Preparing" });
  expect(started).not.toHaveProperty("demands");
});

it("a drain that competes with no other takes its turn, and records what it needs", () => {
  const { status, memory } = next(sceneAt([], 1), fresh, timeAt(100, 2));
  expect(memory.hasTurn).toBe(true);
  expect(status.demands).toHaveLength(2);
});
