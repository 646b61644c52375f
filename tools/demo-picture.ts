import type { BoardPicture } from "../src/board/stream.ts";
import { terminalBoard } from "../src/cli/board/terminal-board.ts";
import { firstPlace } from "../src/cli/board/terminal-keys.ts";
import type { StyledLine } from "../src/cli/command-line/terminal.ts";
import { demoBand } from "../src/cli/demo/demo-band.ts";
import { silentLog } from "../src/cli/demo/demo-run.ts";
import { Director, demoFeed } from "../src/cli/demo/demo-stage.ts";
import { type LiveDemo, startLiveDemo } from "../src/cli/demo/live-demo.ts";
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
    return demoScreen({ demo, clock, kubeconfig: "/tmp/lastcall-demo/kubeconfig" }, moment);
  } finally {
    await demo.close();
    await running;
  }
}

interface DrawnDemo {
  readonly demo: LiveDemo;
  readonly clock: VirtualClock;
  readonly kubeconfig: string;
  readonly address?: string;
}

/** What a terminal shows of a demo at this instant. */
export function demoScreen(
  { demo, clock, ...addresses }: DrawnDemo,
  size: Pick<PictureMoment, "columns" | "rows">,
): readonly StyledLine[] {
  const director = new Director({ demo, speed: 60, isPaced: true });
  const band = demoBand({ ...director.picture(), ...addresses }, size);
  let picture: BoardPicture | undefined;
  demoFeed({ demo, director, clock, real: clock }).subscribe((message) => {
    if (message.kind === "Picture") ({ picture } = message);
  });
  if (picture === undefined) throw new Error("the feed has no picture");
  return terminalBoard(picture, clock.now(), { ...firstPlace, ...size, band }).lines;
}

/** The picture of the README, by path. */
export async function generateDemoPicture(moment: PictureMoment): Promise<Map<string, string>> {
  const lines = await boardAt(moment);
  const title = "The demo in a terminal: what became of both fleets after 24 hours";
  return new Map([["docs/demo.svg", svgFrame(lines, { columns: moment.columns, title })]]);
}
