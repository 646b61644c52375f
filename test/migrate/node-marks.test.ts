import { describe, expect, test } from "vitest";
import { parsePolicyObject } from "../../src/config/policy/parse-policy-object.ts";
import { killerAnnotation } from "../../src/core/cluster/node.ts";
import { cronProblem } from "../../src/core/limits/windows.ts";
import { type Instant, minutes, parseInstant } from "../../src/core/time/time.ts";
import { translateKiller } from "../../src/migrate/killer.ts";
import { killerValuesSetup } from "../../src/migrate/killer-setup.ts";
import {
  handlerMarks,
  killerMarks,
  type MarkedNode,
  takeOver,
} from "../../src/migrate/node-marks.ts";

const stamp = (time: string) => `2026-11-20T${time}:00Z`;

function at(time: string): Instant {
  const found = parseInstant(stamp(time));
  if (found === undefined) throw new Error(time);
  return found;
}

const now = at("12:00");

function node(marks: Partial<MarkedNode>): MarkedNode {
  return {
    ...{ name: "n1", createdAt: at("00:00"), annotations: {}, labels: {}, taintKeys: [] },
    ...{ unschedulable: false, hasToolPod: false, ...marks },
  };
}

const state = (text: string) => ({ [killerAnnotation]: text });
const gone = { runs: false, busyMs: minutes(25) };
const running = { runs: true, busyMs: minutes(25) };

describe("the killer's cordon", () => {
  test.each([
    ["past, if the killer is gone, is removed", stamp("11:59"), gone, "Leftover"],
    ["long past, if the killer runs elsewhere, is removed", stamp("11:35"), running, "Leftover"],
    ["just past, if the killer runs elsewhere, stays", stamp("11:36"), running, "Left"],
    ["in the future stays", stamp("13:00"), gone, "Left"],
    ["invalid stays", "soon", gone, "Left"],
  ] as const)("at an instant that is %s", (_, text, tool, kind) => {
    const found = killerMarks(node({ annotations: state(text), unschedulable: true }), tool, now);
    expect(found).toMatchObject([
      kind === "Left" ? { kind } : { kind, leftover: { uncordon: true } },
    ]);
  });

  test("stays on the node that runs the killer", () => {
    const marks = { annotations: state(stamp("08:00")), unschedulable: true, hasToolPod: true };
    expect(killerMarks(node(marks), running, now)).toMatchObject([{ kind: "Left" }]);
  });

  test("is not assumed on a node without its annotation", () => {
    expect(killerMarks(node({ unschedulable: true }), gone, now)).toEqual([]);
  });

  test("is not assumed on a node that Lastcall removes, but its annotation goes", () => {
    const annotations = { ...state(stamp("11:00")), "lastcall.dev/departure": "n1-1" };
    expect(killerMarks(node({ annotations, unschedulable: true }), gone, now)).toMatchObject([
      { leftover: { uncordon: false, annotations: [killerAnnotation] } },
    ]);
  });

  test("is removed while a killer runs, but not the annotation, which it would add again", () => {
    const annotations = state(stamp("11:00"));
    expect(killerMarks(node({ annotations }), running, now)).toEqual([]);
    expect(killerMarks(node({ annotations, unschedulable: true }), running, now)).toMatchObject([
      { leftover: { uncordon: true, annotations: [] } },
    ]);
  });
});

describe("NTH's marks", () => {
  const taint = "aws-node-termination-handler/spot-itn";
  const taintKeys = [taint, "node.kubernetes.io/unschedulable", "mine"];
  const balancers = "node.kubernetes.io/exclude-from-external-load-balancers";

  test("are removed from a node without an NTH pod, with the cordon and the labels", () => {
    const labels = {
      "aws-node-termination-handler/action": "UncordonAfterReboot",
      [balancers]: "aws-node-termination-handler",
      role: "web",
    };
    expect(handlerMarks(node({ taintKeys, labels, unschedulable: true }))).toEqual([
      {
        kind: "Leftover",
        leftover: {
          ...{ node: "n1", uncordon: true, taintKeys: [taint], annotations: [] },
          labels: ["aws-node-termination-handler/action", balancers],
        },
      },
    ]);
  });

  test.each([
    ["if its pod runs on the node", { taintKeys, hasToolPod: true }],
    [
      "if Lastcall has marked the node",
      { taintKeys, annotations: { "lastcall.dev/departure": "n1" } },
    ],
  ])("stay %s", (_, marks) => {
    expect(handlerMarks(node(marks))).toMatchObject([{ kind: "Left" }]);
  });

  test("are not assumed on a node that was cordoned or excluded by other means", () => {
    const marks = { unschedulable: true, labels: { [balancers]: "true" }, taintKeys: ["mine"] };
    expect(handlerMarks(node(marks))).toEqual([]);
  });
});

describe("the killer's planned instant", () => {
  function policyOf(hours: string) {
    const setup = killerValuesSetup({ extraEnv: { WHITELIST_HOURS: hours } }, "values.yaml");
    const [document] = translateKiller(setup).policies;
    const parsed = parsePolicyObject(document, { cronProblem, unknownFields: "Refuse" });
    if (!("policy" in parsed)) throw new Error("no policy");
    return parsed.policy;
  }

  // Created at midnight, so allowed from 12:00 to 23:30; it is 12:00.
  test.each([
    ["is taken over if it is allowed", "15:00", ""],
    ["is taken over at the earliest time", "12:00", ""],
    ["is taken over at the deadline", "23:30", ""],
    ["is taken over in an open window", "22:30", "22:00-23:00"],
    ["is taken over in a window of the previous day", "12:30", "20:00-13:00"],
  ])("%s", (_, time, hours) => {
    const found = takeOver(node({ annotations: state(stamp(time)) }), policyOf(hours), now);
    expect(found).toEqual({ kind: "Taken", departAt: at(time) });
  });

  test.each([
    ["past the deadline", stamp("23:31"), "", "past its deadline"],
    ["if it has passed", stamp("11:59"), "", "has passed"],
    ["outside of all windows", stamp("21:59"), "22:00-23:00", "in no Allow window"],
    ["when the window has closed", stamp("23:00"), "22:00-23:00", "in no Allow window"],
    ["if it is invalid", "0001", "", '"0001", which is not an instant'],
  ])("is replaced by the plan %s", (_, text, hours, said) => {
    const found = takeOver(node({ annotations: state(text) }), policyOf(hours), now);
    expect(found).toMatchObject({ kind: "Planned", sentence: expect.stringContaining(said) });
  });

  test("is replaced by the plan before the minimum age", () => {
    const young = node({ createdAt: at("06:00"), annotations: state(stamp("17:59")) });
    const found = takeOver(young, policyOf(""), now);
    expect(found).toMatchObject({ sentence: expect.stringContaining("before it is 12 hours old") });
  });

  test("does not exist on a node without the annotation", () => {
    expect(takeOver(node({}), policyOf(""), now)).toBeUndefined();
  });
});
