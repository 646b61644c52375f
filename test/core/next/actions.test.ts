import { describe, expect, it } from "vitest";
import type { ActionRecord } from "../../../src/core/departure/departure.ts";
import { runKey } from "../../../src/core/next/action-steps.ts";
import { freshMemory, type Memory } from "../../../src/core/next/memory.ts";
import { next } from "../../../src/core/next/next.ts";
import type { Action } from "../../../src/core/policy/action.ts";
import { aPolicy } from "../fleet-builder.ts";
import {
  answered,
  aScene,
  at,
  checked,
  inFlight,
  known,
  marked,
  policy,
  statusIn,
  timeAt,
} from "./departure-scene.ts";

const kind = "replaceSecurityGroups";
const isolate = { name: "isolate", at: "AtNotice", how: { kind } } as Action;
const isolates = aPolicy({ ...policy, actions: [isolate] });
const drainingStatus = { status: statusIn(["Preparing", "Draining"]) };
const rollingBack = { status: statusIn(["Preparing", "Draining", "RollingBack"]) };
const notice = { cause: "SpotInterruption", noticedAt: at(5), deadlineAt: at(120_000) } as const;
const done: ActionRecord = {
  ...{ name: "isolate", kind, at: "AtNotice", state: "Done", attempts: 1 },
  ...{ startedAt: at(0), undo: { groups: ["sg-1"] } },
};
const running: ActionRecord = { ...done, state: "Running" };

type SceneOver = Parameters<typeof aScene>[0];

/** The node is known to be cordoned. */
const seen: Memory = { ...freshMemory(timeAt(0, 1)), isSeenCordoned: true };

function kindsOf(over: SceneOver, more: Partial<Memory> = {}): readonly string[] {
  const scene = aScene({ node: marked(), policy: isolates, ...over });
  const memory = { ...seen, ...more };
  return next(scene, memory, timeAt(3000, 2)).requests.map((one) => one.kind);
}

describe("an action", () => {
  it("is carried out once its point is reached, and not again while it is on its way", () => {
    const scene = aScene({ departure: drainingStatus, node: marked(), policy: isolates });
    const first = next(scene, seen, timeAt(3000, 2));
    const run = { kind: "RunAction", name: "isolate", key: runKey("isolate") };
    expect(first.requests).toContainEqual(run);
    const asked = { [run.key]: inFlight("RunAction") };
    const again = next(scene, { ...first.memory, asked }, timeAt(3010, 3));
    expect(again.requests.filter((one) => one.kind === "RunAction")).toEqual([run]);
  });

  it("for another cause starts when a notice has changed it", () => {
    const actions = [{ ...isolate, causes: ["SpotInterruption"] } as Action];
    const planned = { departure: drainingStatus, policy: aPolicy({ ...policy, actions }) };
    expect(kindsOf(planned)).not.toContain("RunAction");
    const departure = { ...drainingStatus, ...notice };
    expect(kindsOf({ ...planned, departure })).toContain("RunAction");
  });

  it("goes on while a phase is not recorded, and after the end of the departure", () => {
    const asked = { [runKey("isolate")]: inFlight("RunAction") };
    const intended = statusIn(["Preparing", "Draining", "Releasing"]);
    const over = { departure: drainingStatus, actions: [running] };
    expect(kindsOf(over, { asked, intended })).toContain("RunAction");
    const ended = { status: { ...statusIn(["Preparing", "Ended"]), endedAt: at(1) } };
    expect(kindsOf({ ...over, departure: ended }, { asked })).toContain("RunAction");
  });

  it("is no longer wanted in a roll-back, which undoes it after that", () => {
    const asked = { [runKey("isolate")]: inFlight("RunAction") };
    const over = { departure: rollingBack, actions: [running] };
    expect(kindsOf(over, { asked })).toEqual([]);
    expect(kindsOf(over)).toEqual(["UndoAction"]);
  });

  it("that could not be undone is not tried again, and does not keep the node cordoned", () => {
    const asked = { "undo action isolate": answered("UndoAction") };
    const failed: ActionRecord = { ...done, state: "Failed" };
    const kinds = kindsOf({ departure: rollingBack, actions: [failed] }, { asked });
    expect(kinds).toEqual(["Uncordon"]);
  });

  it("starts again under a notice only after its undo has ended", () => {
    const departure = { status: statusIn(["Preparing", "Draining"]), ...notice };
    const over = { departure, actions: [running] };
    const asked = { "undo action isolate": inFlight("UndoAction") };
    expect(kindsOf(over, { asked })).not.toContain("RunAction");
    expect(kindsOf(over)).toContain("RunAction");
  });
});

it("of one kind, the latest action is undone first", () => {
  const actions = ["first", "second"].map((name, index) => {
    return { ...done, name, startedAt: at(index * 1000) };
  });
  const scene = aScene({ departure: rollingBack, policy: isolates, actions });
  const { requests } = next(scene, freshMemory(timeAt(0, 1)), timeAt(5000, 2));
  expect(requests).toMatchObject([{ kind: "UndoAction", name: "second" }]);
});

it.each([
  {
    what: "a roll-back",
    scene: aScene({ departure: rollingBack, policy: isolates, actions: [done] }),
  },
  {
    what: "a hold",
    scene: aScene({
      departure: { status: statusIn(["Preparing"]) },
      policy: isolates,
      actions: [done],
      facts: {
        ...checked(),
        releasable: known({ kind: "Problem", reason: "ReleaseImpossible", detail: "no" }, 9),
      },
    }),
  },
])("the undo of $what ends as soon as a notice begins the actions again", ({ scene }) => {
  const before = next(scene, freshMemory(timeAt(0, 1)), timeAt(10, 2));
  const [request] = before.requests;
  expect(request).toMatchObject({ kind: "UndoAction", stops: true });
  const noticed = { ...scene, departure: { ...scene.departure, ...notice } };
  const asked = { [request?.key ?? ""]: inFlight("UndoAction") };
  const { requests } = next(noticed, { ...before.memory, asked }, timeAt(20, 3));
  expect(requests.map((one) => one.kind)).not.toContain("UndoAction");
});

it("what an earlier process has started is interrupted before the departure is held", () => {
  const lost: ActionRecord = { ...running, undo: undefined };
  const over = {
    departure: { status: statusIn(["Preparing"]) },
    actions: [lost],
    facts: {
      ...checked(),
      releasable: known({ kind: "Problem", reason: "ReleaseImpossible", detail: "no" } as const, 9),
    },
  };
  expect(kindsOf(over)).toEqual(["InterruptActions"]);
});

it("a second look at a required action before the drain asks for nothing more", () => {
  const how = { kind, groupIds: [] };
  const action = { ...isolate, how, at: "BeforeDrain", required: true } as Action;
  const scene = aScene({
    ...{ departure: { status: statusIn(["Preparing"]) }, node: marked(), facts: checked() },
    policy: aPolicy({ ...policy, actions: [action] }),
  });
  const memory: Memory = { ...seen, cordonedMs: 1000 };
  const first = next(scene, memory, timeAt(3000, 2));
  const again = next(scene, first.memory, timeAt(3000, 2));
  expect(first.requests.map((one) => one.kind)).toEqual(["RunAction"]);
  expect(again.requests).toEqual(first.requests);
});

it("no action begins while the uncordon of a roll-back may still arrive", () => {
  const departure = { status: statusIn(["Preparing"]), ...notice };
  const over = { departure, actions: [] };
  expect(kindsOf(over, { asked: { uncordon: inFlight("Uncordon") } })).not.toContain("RunAction");
  expect(kindsOf(over)).toContain("RunAction");
});
