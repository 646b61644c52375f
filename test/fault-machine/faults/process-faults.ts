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
};

function replicaOf(stage: Stage, index: number): Replica {
  return stage.replicas[index % stage.replicas.length] as Replica;
}
