import type { BoardRights, FleetState } from "../../board/stream.ts";
import type { OptionsOf } from "../../config/options/options.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { PageText } from "../../contracts/http-route.ts";
import { seededRng } from "../../core/chance/rng.ts";
import { isLastcallError } from "../../errors.ts";
import { openBrowser } from "../../runtime/child-process.ts";
import type { CommandIo } from "../command-line/command.ts";
import { DemoStage, type Director } from "../demo/demo-stage.ts";
import type { LiveDemo } from "../demo/live-demo.ts";
import { type ServedBoard, startBoard } from "./start-board.ts";

/** In the model everybody has every permission. */
const everyRight: BoardRights = {
  patchNodes: true,
  createDepartures: true,
  patchDepartures: true,
  deleteDepartures: true,
  patchPolicies: true,
};

/**
 * The board of `lastcall board` on the model's cluster and clock, fed by the controller's watches.
 * If it cannot be served, the demo continues without it: undefined, with the reason on stderr.
 */
export async function serveDemoBoard(input: DemoBoardInput): Promise<ServedBoard | undefined> {
  try {
    return await serve(input);
  } catch (error) {
    if (!isLastcallError(error) || error.code === "USAGE") throw error;
    input.io.err(`lastcall: ${error.message}\n`);
    return undefined;
  }
}

/** On a terminal, a new address is shown once the old one has been used. */
function entryOf({ openScreen }: CommandIo): PageText {
  return openScreen === undefined
    ? {
        en: "run lastcall demo again",
        ja: "lastcall demo をもう一度実行してください",
      }
    : {
        en: "open the address that lastcall demo shows now",
        ja: "lastcall demo がいま表示しているアドレスを開いてください",
      };
}

interface DemoBoardInput {
  readonly demo: LiveDemo;
  readonly director: Director;
  readonly clock: Clock;
  readonly options: OptionsOf<"demo">;
  readonly io: CommandIo;
  /** The path for the demo's own data. */
  readonly kubeconfig: string;
}

async function serve(input: DemoBoardInput): Promise<ServedBoard> {
  const { demo, director, clock, options, io, kubeconfig } = input;
  const state = (): Omit<FleetState, "days"> => ({
    cluster: "demo",
    isDemo: true,
    connection: { kind: "Live" },
    missing: [],
    rights: everyRight,
    isCounted: false,
  });
  const { address } = options;
  // Its own random stream, so that viewing the board does not change the fleet's course.
  const rng = seededRng(io.clock.now());
  const { api, fleet } = demo;
  const stage = new DemoStage(director, io.clock);
  const over = new AbortController();
  const board = await startBoard({
    ...{ address, entry: entryOf(io), place: { kubeconfig }, api, fleet, state, rng, io },
    clusterClock: clock,
    rate: () => director.speed(),
    moreRoutes: stage.routes(),
  });
  const showing = stage.run(board.refresh, over.signal);
  const problem = options.open ? await openBrowser(board.url()) : undefined;
  if (problem !== undefined)
    io.err(`lastcall: Cannot open a browser: ${problem}; open the address yourself\n`);
  return {
    ...board,
    close: async () => {
      over.abort();
      await Promise.all([showing, board.close()]);
    },
  };
}
