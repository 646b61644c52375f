import { expect, it } from "vitest";
import { freshMemory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import type { SceneFacts } from "../../../src/core/next/scene.ts";
import { minutes } from "../../../src/core/time/time.ts";
import { aPolicy } from "../fleet-builder.ts";
import {
  answered,
  aScene,
  at,
  checked,
  inFlight,
  policy,
  statusIn,
  theNode,
  timeAt,
  unanswered,
} from "./departure-scene.ts";

const paused = aPolicy({ ...policy, paused: true });
const begun = { status: statusIn(["Preparing"]) };

it("a cordon that is on its way is past the checks: its answer decides what follows", () => {
  const scene = aScene({ departure: begun, facts: checked(), newestPolicy: () => paused });
  const memory = { ...freshMemory(timeAt(0, 1)), asked: { cordon: inFlight("Cordon") } };
  const { status, isOver } = next(scene, memory, timeAt(10, 2));
  expect({ phase: status.phase, isOver }).toEqual({ phase: "Preparing", isOver: false });
});

it("a cordon whose answer was lost is undone before the departure is held", () => {
  const scene = aScene({ departure: begun, facts: checked(), newestPolicy: () => paused });
  const sent = { cordon: unanswered("Cordon") };
  const memory = { ...freshMemory(timeAt(0, 1)), asked: sent };
  const out = next(scene, memory, timeAt(10, 2));
  expect(out.status.phase).toBe("Preparing");
  expect(out.requests.map(({ kind }) => kind)).toEqual(["Uncordon"]);
  const asked = { ...out.memory.asked };
  for (const { key, kind } of out.requests) asked[key] = answered(kind);
  expect(next(scene, { ...out.memory, asked }, timeAt(20, 3)).status.phase).toBe("Held");
});

it("a departure that a paused policy holds before its cordon is held at once", () => {
  const scene = aScene({ departure: begun, facts: checked(), newestPolicy: () => paused });
  const { status, requests } = next(scene, freshMemory(timeAt(0, 1)), timeAt(10, 2));
  expect({ phase: status.phase, requests }).toEqual({ phase: "Held", requests: [] });
});

it.each([
  { spacingMinutes: 1, validSeconds: 70 },
  { spacingMinutes: 3, validSeconds: 90 },
  { spacingMinutes: 15, validSeconds: 120 },
])(
  "a start is valid for $validSeconds s if starts are $spacingMinutes min apart",
  ({ spacingMinutes, validSeconds }) => {
    const spacing = { mode: "Late", minMs: minutes(spacingMinutes) } as const;
    const apart = aPolicy({ ...policy, spacing });
    const scene = aScene({ departure: begun, facts: checked(), policy: apart });
    const phaseAfter = (ms: number) => next(scene, freshMemory(timeAt(0, 1)), timeAt(ms, 2)).status;
    expect(phaseAfter(validSeconds * 1000).phase).toBe("Preparing");
    const lapsed = phaseAfter(validSeconds * 1000 + 1);
    expect(lapsed).toMatchObject({ phase: "Held", reason: "StartLapsed" });
  },
);

it("a start is valid for no longer on a clock that was set back", () => {
  const scene = aScene({ departure: begun, facts: checked() });
  const setBack = { ...timeAt(120_001 - 3_600_000, 2), ms: 120_001 };
  const { status } = next(scene, freshMemory(timeAt(0, 1)), setBack);
  expect(status).toMatchObject({ phase: "Held", reason: "StartLapsed" });
});

it("a start lapses if its policy is changed before the cordon: deadline and budgets may be others", () => {
  const patient = aPolicy({ ...policy, lifetime: { ...policy.lifetime, reserveMs: minutes(5) } });
  const changed = aScene({ departure: begun, facts: checked(), newestPolicy: () => patient });
  const { status } = next(changed, freshMemory(timeAt(0, 1)), timeAt(10, 2));
  expect(status).toMatchObject({ phase: "Held", reason: "StartLapsed" });
  const read = aScene({ departure: begun, facts: checked(), newestPolicy: () => ({ ...policy }) });
  expect(next(read, freshMemory(timeAt(0, 1)), timeAt(10, 2)).status.phase).toBe("Preparing");
});

it("a requested start is held if another tool marks the node before the cordon", () => {
  const taints = [{ key: "karpenter.sh/disrupted", effect: "NoSchedule" }] as const;
  const manual = { ...begun, cause: "Manual" } as const;
  const scene = aScene({ departure: manual, facts: checked(), node: { ...theNode, taints } });
  const { status } = next(scene, freshMemory(timeAt(0, 1)), timeAt(10, 2));
  expect(status).toMatchObject({ phase: "Held", reason: "LeftToOthers" });
});

it.each([
  { what: "goes out after its start", before: [], deadlineMs: 3_600_000, phase: "Held" },
  { what: "was out before", before: ["n2"], deadlineMs: 3_600_000, phase: "Preparing" },
  { what: "goes out past its own deadline", before: [], deadlineMs: 5, phase: "Preparing" },
])("a start whose budget is used up by a node that $what", ({ before, deadlineMs, phase }) => {
  const departure = { ...begun, deadlineAt: at(deadlineMs) };
  const hold = { kind: "Held", reason: "BudgetSpent", detail: "1 of 1 nodes are out" } as const;
  const scene = (names: readonly string[], facts: SceneFacts) => {
    const isOut = names.length > 0;
    const nodesOut = () => ({ names: new Set(names), hold: isOut ? hold : undefined });
    return aScene({ departure, facts, nodesOut });
  };
  // Its checks take their time, and meanwhile the cloud may announce the end of another node.
  const { memory } = next(scene(before, {}), freshMemory(timeAt(0, 1)), timeAt(5, 2));
  const { status, requests } = next(scene(["n2"], checked()), memory, timeAt(10, 3));
  expect(status.phase).toBe(phase);
  if (phase !== "Held") return;
  expect(status.reason).toBe("BudgetSpent");
  expect(requests).toEqual([]);
});
