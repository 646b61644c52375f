import { BoardFeed } from "../../board/board-feed.ts";
import type { DemoKey, DemoPicture, Moment } from "../../board/demo-picture.ts";
import type { BoardRights, FleetFacts } from "../../board/stream.ts";
import type { OptionsOf } from "../../config/options/options.ts";
import type { Clock } from "../../contracts/clock.ts";
import type { PageAnswer, PageRoutes, PageText } from "../../contracts/http-route.ts";
import { seededRng } from "../../core/chance/chance.ts";
import { fieldsOf } from "../../core/json/json-field.ts";
import { millis } from "../../core/time/time.ts";
import { isLastcallError } from "../../errors.ts";
import { openBrowser } from "../../runtime/child-process.ts";
import { type ServedBoard, startBoard } from "../board/start-board.ts";
import type { CommandIo } from "../command-line/command.ts";
import { hasReleaser } from "../commands/plan.ts";
import { type Controls, firstControls, momentOf, paceOf, pressed } from "./controls.ts";
import type { LiveDemo } from "./live-demo.ts";

/** How often a browser gets an update. A large fleet gets fewer and smaller ones. */
const leastPauseMs = 200;

const pausePerWork = 4;

/** The largest number of nodes that a page shows. */
const mostNodes = 120;

const keys: readonly DemoKey[] = [
  ...(["Pause", "Faster", "Slower", "NextEvent", "Interrupt"] as const),
  ...(["Read", "ReadOn"] as const),
];

/** Shows the two fleets in browsers, and handles the demo's keys that they may press. */
export class DemoStage {
  readonly #director: Director;
  readonly #clock: Clock;
  readonly #listeners = new Set<(text: string) => void>();
  #speed = 0;

  /** `clock` is the wall clock. */
  constructor(director: Director, clock: Clock) {
    this.#director = director;
    this.#clock = clock;
  }

  routes(): PageRoutes {
    return {
      get: {
        "/api/demo": () => ({
          type: "text/event-stream; charset=utf-8",
          open: (page) => this.#subscribe((text) => page.send([text])),
        }),
      },
      post: { "/api/demo/key": ({ body }) => this.#press(body) },
    };
  }

  /** Sends updates while a page is open, until the signal aborts; reports changes of the speed. */
  async run(onSpeed: () => void, signal: AbortSignal): Promise<void> {
    const clock = this.#clock;
    while (!signal.aborted) {
      const startMs = clock.monotonic();
      this.#show();
      const speed = this.#director.speed();
      if (speed !== this.#speed) onSpeed();
      this.#speed = speed;
      const pauseMs = Math.max(leastPauseMs, (clock.monotonic() - startMs) * pausePerWork);
      await clock.sleep(millis(pauseMs), signal).catch(() => undefined);
    }
  }

  #subscribe(send: (text: string) => void): () => void {
    send(this.#text());
    this.#listeners.add(send);
    return () => this.#listeners.delete(send);
  }

  #press(body: unknown): PageAnswer {
    const key = keys.find((one) => one === fieldsOf(body).key);
    if (key === undefined) return { status: 400, json: { problem: "The demo has no such key" } };
    this.#director.press(key);
    this.#show();
    return { status: 200, json: {} };
  }

  #show(): void {
    if (this.#listeners.size === 0) return;
    const text = this.#text();
    for (const send of [...this.#listeners]) send(text);
  }

  #text(): string {
    const picture = this.#director.picture();
    const nodes = picture.nodes.slice(0, mostNodes);
    const shown: DemoPicture = { ...picture, nodes, unseen: picture.nodes.length - nodes.length };
    return `data: ${JSON.stringify(shown)}\n\n`;
  }
}

interface DirectorOptions {
  readonly demo: Pick<LiveDemo, "events" | "interrupt" | "picture" | "pulse">;
  /** `--speed`: how many times faster than real time by default. */
  readonly speed: number;
  /** Whether the clock slows down while something happens; it does not for plain lines. */
  readonly isPaced: boolean;
}

/** The demo's speed and keys, shared by the terminal and all browsers. */
export class Director {
  readonly #options: DirectorOptions;
  #controls: Controls = firstControls;

  constructor(options: DirectorOptions) {
    this.#options = options;
  }

  press(key: DemoKey): void {
    const { demo } = this.#options;
    this.#controls = pressed(this.#controls, key, demo.events());
    if (key === "Interrupt") demo.interrupt();
  }

  /** How many times faster than real time the model runs; 0 while paused. */
  speed(): number {
    return this.#now().speed;
  }

  picture(): DemoPicture {
    const { paused, isReading } = this.#controls;
    return { ...this.#options.demo.picture(), ...this.#now(), paused, isReading };
  }

  /** Called at every step of the model, so it reads the fleets only once. */
  #now(): { readonly speed: number; readonly moment: Moment } {
    const { demo, speed, isPaced } = this.#options;
    const pulse = demo.pulse();
    const moment = this.#isSkipping() ? "Skipping" : isPaced ? momentOf(pulse) : "Quiet";
    const pace = isPaced || moment === "Skipping" ? paceOf(moment, pulse) : 1;
    const { paused, times } = this.#controls;
    if (paused) return { moment, speed: 0 };
    return { moment, speed: moment === "Skipping" ? pace : speed * times * pace };
  }

  #isSkipping(): boolean {
    const { skipPast } = this.#controls;
    if (skipPast === undefined) return false;
    if (this.#options.demo.events() <= skipPast) return true;
    this.#controls = { ...this.#controls, skipPast: undefined };
    return false;
  }
}

/** In the model everybody has every permission. */
const everyRight: BoardRights = {
  patchNodes: true,
  createDepartures: true,
  patchDepartures: true,
  deleteDepartures: true,
  patchPolicies: true,
};

interface DemoFeedInput {
  readonly demo: Pick<LiveDemo, "fleet" | "isSynced">;
  readonly director: Pick<Director, "speed">;
  /** The model's. */
  readonly clock: Clock;
  /** Real time. */
  readonly real: Clock;
}

/** The pictures of the model's cluster: the board of the terminal and of all browsers. */
export function demoFeed({ demo, director, clock, real }: DemoFeedInput): BoardFeed {
  const state = (): FleetFacts => ({
    cluster: "demo",
    isDemo: true,
    connection: { kind: demo.isSynced() ? "Live" : "Connecting" },
    missing: [],
    rights: everyRight,
    isCounted: false,
  });
  return new BoardFeed({
    ...{ fleet: demo.fleet, state, hasReleaser, clock: real },
    cluster: { now: () => clock.now(), rate: () => director.speed() },
    run: real.now().toString(36),
  });
}

interface DemoBoardInput {
  readonly demo: LiveDemo;
  readonly director: Director;
  readonly feed: BoardFeed;
  readonly clock: Clock;
  readonly options: OptionsOf<"demo">;
  readonly io: CommandIo;
  /** The path for the demo's own data. */
  readonly kubeconfig: string;
}

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

async function serve(input: DemoBoardInput): Promise<ServedBoard> {
  const { demo, director, feed, clock, options, io, kubeconfig } = input;
  const { address } = options;
  // Its own random stream, so that viewing the board does not change the fleet's course.
  const rng = seededRng(io.clock.now());
  const { api, fleet } = demo;
  const stage = new DemoStage(director, io.clock);
  const over = new AbortController();
  const board = await startBoard({
    ...{ address, entry: entryOf(io), place: { kubeconfig }, api, fleet, feed, rng, io },
    clusterClock: clock,
    moreRoutes: stage.routes(),
  });
  const showing = stage.run(() => feed.refresh(), over.signal);
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
