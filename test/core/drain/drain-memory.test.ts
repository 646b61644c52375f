import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type DrainMemory,
  type DrainView,
  drainSent,
  drainStep,
} from "../../../src/core/drain/drain-memory.ts";
import type { DrainAct } from "../../../src/core/drain/drain-progress.ts";
import type { DrainStep } from "../../../src/core/drain/drain-step.ts";
import { hours, type Instant, millis, plus, seconds } from "../../../src/core/time/time.ts";
import { anyCourse } from "./any-course.ts";
import { breachesOf, graceLeft } from "./drain-allowance.ts";
import { type CourseDrain, type DrainCourse, playCourse } from "./drain-course.ts";
import { drainBy } from "./held-drain.ts";

/** Everything that a course shows of the drain, as text. */
function traceOf(course: DrainCourse, drain: CourseDrain): readonly string[] {
  const trace: string[] = [];
  playCourse(course, {
    drain,
    witness: {
      stepped: (step) => trace.push(printed(step)),
      sent: (act, about) => trace.push(printed([act, about])),
    },
  });
  return trace;
}

/** Calls `check` after each step that leaves the drain running. */
function atEachStep(
  course: DrainCourse,
  check: (memory: DrainMemory, about: { step: DrainStep; view: DrainView }) => void,
): void {
  const drain = drainBy();
  playCourse(course, {
    drain,
    witness: {
      stepped(step, view) {
        if (step.verdict === "Running") check(drain.memory, { step, view });
      },
    },
  });
}

const runs = { numRuns: 150 };

describe("a drain is at rest", () => {
  it("after each step: a second one on the same facts asks for nothing and changes nothing", () => {
    fc.assert(
      fc.property(anyCourse({ kills: "Some" }), (course) => {
        atEachStep(course, (memory, { step, view }) => {
          const again = drainStep(memory, view);
          expect(printed(again.step)).toBe(printed({ ...step, acts: [], ended: [] }));
          expect(printed(again.memory)).toBe(printed(memory));
        });
      }),
      runs,
    );
  });

  it("until the later instant that the step named, however often it is stepped before", () => {
    fc.assert(
      fc.property(anyCourse({ kills: "Some" }), (course) => {
        atEachStep(course, (first, { step, view }) => {
          const endAt = step.askAgainAt ?? plus(view.now, hours(1));
          expect(endAt).toBeGreaterThan(view.now);
          let memory = first;
          for (const share of [0.01, 0.3, 0.7, 0.99]) {
            const now = plus(view.now, millis(Math.floor(share * (endAt - view.now))));
            const idle = drainStep(memory, { ...view, now });
            expect(idle.step.acts).toEqual([]);
            expect(idle.step.verdict).toBe("Running");
            memory = idle.memory;
          }
        });
      }),
      runs,
    );
  });
});

function printed(data: unknown): string {
  return JSON.stringify(data);
}

it("a drain whose memory was printed as JSON and read again at any moment goes on alike", () => {
  fc.assert(
    fc.property(anyCourse({ kills: "None" }), fc.nat(60), (course, from) => {
      let transitions = 0;
      const read = (memory: DrainMemory): DrainMemory => {
        transitions += 1;
        return transitions < from ? memory : JSON.parse(printed(structuredClone(memory)));
      };
      expect(traceOf(course, drainBy(read))).toEqual(traceOf(course, drainBy()));
    }),
    runs,
  );
});

it("a drain whose memory is lost at any moment asks nobody too early or with too little grace", () => {
  fc.assert(
    fc.property(anyCourse({ kills: "Some" }), (course) => {
      const found: string[] = [];
      let isOver = false;
      playCourse(course, {
        drain: drainBy(),
        witness: {
          stepped(step, view, { pods }) {
            const there = [...pods.values()];
            const asks = isOver ? [] : step.acts;
            found.push(...asks.flatMap((act) => breachesOf(act, { ...view, there })));
            isOver ||= step.verdict !== "Running";
          },
        },
      });
      expect(found).toEqual([]);
    }),
    { numRuns: 500 },
  );
});

it("a request that is sent late, or again, gets as much grace as the deadline leaves by then", () => {
  fc.assert(
    fc.property(anyCourse({ kills: "Some" }), (course) => {
      const drain = drainBy();
      const granted = new Map<DrainAct, number>();
      let deadlineAt: Instant | undefined;
      playCourse(course, {
        drain,
        witness: {
          stepped(_, view) {
            deadlineAt = view.deadlineAt;
          },
          sent(act, { graceSeconds, pod, now }) {
            // A pod that is leaving by now gets no other grace.
            const isOpen = drain.memory.progress[act.pod.uid]?.kind === "InFlight";
            if (act.kind === "RestartOwner" || !isOpen) return;
            const most = granted.get(act) ?? act.graceSeconds ?? pod.graceSeconds;
            const endAt = deadlineAt ?? plus(now, seconds(most));
            const its = graceSeconds ?? pod.graceSeconds;
            expect(its).toBe(graceLeft(most, { endAt, now }));
            granted.set(act, its);
          },
        },
      });
    }),
    { numRuns: 500 },
  );
});

it("an act that is queued when its drain ends is not sent", () => {
  fc.assert(
    fc.property(anyCourse({ kills: "None" }), (course) => {
      atEachStep(course, (memory, { step, view }) => {
        for (const act of step.acts) {
          expect(drainSent({ ...memory, isOver: true }, act, view.now)).toBe("Over");
        }
      });
    }),
    runs,
  );
});
