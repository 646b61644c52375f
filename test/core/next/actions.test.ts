import { expect, it } from "vitest";
import { freshMemory } from "../../../src/core/next/memory.ts";
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

const deregisters = aPolicy({ ...policy, actions: [{ name: "drain-targets" } as Action] });
const drainingStatus = { status: statusIn(["Preparing", "Draining"]) };

it("actions are begun again when a notice has changed the cause", () => {
  const notice = {
    cause: "SpotInterruption",
    noticedAt: at(5000),
    deadlineAt: at(125_000),
  } as const;
  const begun = next(
    aScene({ departure: drainingStatus, node: marked(), policy: deregisters }),
    freshMemory(timeAt(0, 1)),
    timeAt(3000, 2),
  );
  const asked = Object.fromEntries(begun.requests.map((one) => [one.key, answered(one.kind)]));
  const scene = aScene({
    departure: { ...drainingStatus, ...notice },
    node: marked(),
    policy: deregisters,
  });
  const { requests } = next(scene, { ...begun.memory, asked }, timeAt(6000, 3));
  expect(requests.map(({ kind }) => kind)).toContain("BeginActions");
});

it.each([
  {
    what: "an undo",
    scene: aScene({
      departure: { status: statusIn(["Preparing", "Draining", "RollingBack"]) },
      policy: deregisters,
    }),
    kind: "UndoActions",
  },
  {
    what: "a suspension",
    scene: aScene({
      departure: { status: statusIn(["Preparing"]) },
      policy: deregisters,
      facts: {
        ...checked(),
        releasable: known({ kind: "Problem", reason: "ReleaseImpossible", detail: "no" }, 9),
      },
    }),
    kind: "SuspendActions",
  },
] as const)("$what of actions ends as soon as a notice begins them again", ({ scene, kind }) => {
  const before = next(scene, freshMemory(timeAt(0, 1)), timeAt(10, 2));
  const [request] = before.requests;
  expect(request).toMatchObject({ kind, stops: true });
  const notice = { cause: "SpotInterruption", noticedAt: at(5), deadlineAt: at(120_000) } as const;
  const noticed = { ...scene, departure: { ...scene.departure, ...notice } };
  const asked = { [request?.key ?? ""]: inFlight(kind) };
  const { requests } = next(noticed, { ...before.memory, asked }, timeAt(20, 3));
  const kinds = requests.map((one) => one.kind);
  expect(kinds).toContain("BeginActions");
  expect(kinds).not.toContain(kind);
});
