import { expect, it } from "vitest";
import { Evaluation } from "../../../src/core/next/evaluation.ts";
import { freshMemory } from "../../../src/core/next/memory.ts";
import { answered, aScene, timeAt } from "./departure-scene.ts";

const request = { kind: "Unreserve", name: "placeholder", key: "free placeholder" } as const;

/** Whether it is asked for again this long after its last answer. */
function isAskedAgain(afterMs: number, attempts: number): boolean {
  const asked = { ...answered("Unreserve"), attempts, answeredMs: 0 };
  const memory = { ...freshMemory(timeAt(0, 1)), asked: { [request.key]: asked } };
  const evaluation = new Evaluation(aScene({}), memory, timeAt(afterMs, 2));
  const answer = evaluation.attemptUntilSeen(request);
  expect(answer === undefined).toBe(evaluation.requests.length === 1);
  return evaluation.requests.length === 1;
}

it.each([
  { attempts: 1, seconds: 1 },
  { attempts: 2, seconds: 2 },
  { attempts: 4, seconds: 8 },
  { attempts: 7, seconds: 60 },
  { attempts: 500, seconds: 60 },
])("a watch that does not show an answer is given $seconds s after attempt $attempts", (row) => {
  const { attempts, seconds } = row;
  expect(isAskedAgain(seconds * 1000 - 1, attempts)).toBe(false);
  expect(isAskedAgain(seconds * 1000, attempts)).toBe(true);
});
