import { type FaultKind, faultKind } from "../fault.ts";
import type { Replica } from "../replica.ts";
import type { Stage } from "../stage.ts";

type WriteKind = "any" | "cordon" | "eviction" | "status";

const writePaths: Readonly<Record<WriteKind, RegExp>> = {
  any: /./,
  cordon: /^\/api\/v1\/nodes\/[^/]+$/,
  eviction: /\/eviction$/,
  status: /\/departures\/[^/]+\/status$/,
};

/** What happens to the controllers themselves. */
export const processFaults: Readonly<Record<string, FaultKind>> = {
  kill: faultKind({
    says: "a controller is killed and comes back later",
    draw: ({ draw }) => ({ replica: draw.between(0, 1) }),
    begin: (stage, { replica }) => replicaOf(stage, replica).killWhile(),
  }),
  "kill-all": faultKind({
    says: "no controller runs",
    draw: () => ({}),
    begin: (stage) => {
      const starts = stage.replicas.map((one) => one.killWhile());
      return () => {
        for (const start of starts) start();
      };
    },
  }),
  "kill-at-write": faultKind({
    says: "a controller dies just before or just after one of its next writes",
    draw: ({ draw }) => ({
      when: draw.pick<"Before" | "After">("Before", "After"),
      of: draw.pick<WriteKind>("any", "cordon", "eviction", "status"),
      nth: draw.between(1, 4),
      replica: draw.between(0, 1),
    }),
    begin: (stage, { when, of, nth, replica }) => {
      const its = replicaOf(stage, replica);
      let startAgain: (() => void) | undefined;
      const isMeant = (path: string) => writePaths[of].test(path);
      const onTrap = (): void => {
        startAgain = its.killWhile();
      };
      its.killAtWrite({ when, nth, isMeant, onTrap });
      return () => {
        its.killAtWrite(undefined);
        startAgain?.();
      };
    },
  }),
  pause: faultKind({
    says: "a controller stands still, and goes on where it was",
    draw: ({ draw }) => ({ replica: draw.between(0, 1) }),
    begin: (stage, { replica }) => {
      const its = replicaOf(stage, replica);
      its.pause();
      return () => its.resume();
    },
  }),
  "clock-off": faultKind({
    says: "a controller's clock is set wrong, and later right",
    draw: ({ draw }) => ({
      replica: draw.between(0, 1),
      seconds: draw.pick(-3600, -300, -90, 90, 300, 3600, 7200),
    }),
    begin: (stage, { replica, seconds }) => {
      const its = replicaOf(stage, replica);
      its.stepClock(seconds * 1000);
      return () => its.stepClock(-seconds * 1000);
    },
  }),
  "clock-drift": faultKind({
    says: "a controller's clock runs too fast or too slow, and is set right in the end",
    draw: ({ draw }) => ({
      replica: draw.between(0, 1),
      msPerMinute: draw.pick(-3000, -300, 300, 3000),
    }),
    begin: (stage, { replica, msPerMinute }) => {
      const its = replicaOf(stage, replica);
      let offMs = 0;
      let isOver = false;
      const drift = (): void => {
        if (isOver) return;
        offMs += msPerMinute;
        its.stepClock(msPerMinute);
        stage.after(60_000, drift);
      };
      drift();
      return () => {
        isOver = true;
        its.stepClock(-offMs);
      };
    },
  }),
  "agent-dead": faultKind({
    says: "the agents of all nodes are dead, and come back",
    draw: () => ({}),
    begin: (stage) => stage.agents.killWhile(),
  }),
  "agent-clock-off": faultKind({
    says: "the clocks of all nodes are wrong",
    draw: ({ draw }) => ({ seconds: draw.pick(-3600, -60, 60, 3600) }),
    begin: (stage, { seconds }) => {
      stage.agents.stepClocks(seconds * 1000);
      return () => stage.agents.stepClocks(-seconds * 1000);
    },
  }),
};

function replicaOf(stage: Stage, index: number): Replica {
  return stage.replicas[index % stage.replicas.length] as Replica;
}
