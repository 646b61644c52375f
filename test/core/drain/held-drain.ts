import { seededRng } from "../../../src/core/chance/chance.ts";
import {
  type DrainMemory,
  drainAnswered,
  drainSent,
  drainStep,
  freshDrain,
} from "../../../src/core/drain/drain-memory.ts";
import type { CourseDrain } from "./drain-course.ts";

/** A drain whose memory can be looked at. */
export interface HeldDrain extends CourseDrain {
  readonly memory: DrainMemory;
}

/** The transitions alone; `kept` is applied to the memory after each of them. */
export function drainBy(
  kept: (memory: DrainMemory) => DrainMemory = (memory) => memory,
): HeldDrain {
  let memory = freshDrain;
  const rng = seededRng(1);
  return {
    get memory() {
      return memory;
    },
    step(view) {
      const stepped = drainStep(memory, view);
      memory = kept(stepped.memory);
      return stepped.step;
    },
    queue() {},
    sent(act, now) {
      const sent = drainSent(memory, act, now);
      if (sent === "Over") throw new Error("a drain under way refuses its own act");
      memory = kept(sent.memory);
      return sent.graceSeconds;
    },
    answered(act, about) {
      memory = kept(drainAnswered(memory, act, { ...about, rng }));
    },
    killed() {
      memory = freshDrain;
    },
  };
}
