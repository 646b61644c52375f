import type { StyledLine } from "../src/cli/command-line/terminal.ts";
import { silentLog } from "../src/cli/demo/demo-run.ts";
import { board } from "../src/cli/demo/demo-screen.ts";
import { Director } from "../src/cli/demo/demo-stage.ts";
import { startLiveDemo } from "../src/cli/demo/live-demo.ts";
import { instant, type Millis, parseInstant, plus, seconds } from "../src/core/time/time.ts";
import { eventLoopTurn } from "../src/runtime/real-clock.ts";
import { VirtualClock } from "../src/sim/time/virtual-clock.ts";
import { svgFrame } from "./svg-frame.ts";

export interface PictureMoment {
  readonly seed: number;
  readonly after: Millis;
  readonly columns: number;
  readonly rows: number;
}

/**
 * When the machines have reached their 24 hours: what became of the fleet with Lastcall, and
 * without.
 */
export const readmeMoment: PictureMoment = {
  seed: 3,
  after: seconds(352 * 60),
  columns: 104,
  rows: 34,
};

/** The demo's board at an instant of virtual time; the same each time it is drawn. */
export async function boardAt(moment: PictureMoment): Promise<readonly StyledLine[]> {
  const startAt = parseInstant("2026-11-20T00:00:00Z") ?? instant(0);
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const { seed } = moment;
  const demo = startLiveDemo({ clock, seed, nodes: 18, log: silentLog });
  const running = demo.run(() => {});
  try {
    await clock.runUntil(plus(startAt, moment.after));
    const picture = new Director({ demo, speed: 60, isPaced: true }).picture();
    return board({ ...picture, kubeconfig: "/tmp/lastcall-demo/kubeconfig" }, moment);
  } finally {
    await demo.close();
    await running;
  }
}

/** The picture of the README, by path. */
export async function generateDemoPicture(moment: PictureMoment): Promise<Map<string, string>> {
  const lines = await boardAt(moment);
  const title = "The demo in a terminal: what became of both fleets after 24 hours";
  return new Map([["docs/demo.svg", svgFrame(lines, { columns: moment.columns, title })]]);
}
