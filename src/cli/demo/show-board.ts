import type { VirtualClock } from "../../sim/time/virtual-clock.ts";
import type { DemoBoard } from "../board/demo-board.ts";
import type { CommandInput } from "../command-line/command-spec.ts";
import { ansiFrame } from "./ansi-frame.ts";
import { board as boardLines } from "./board.ts";
import type { BoardState } from "./board-state.ts";
import { type Controls, firstControls, type Key, pressed } from "./controls.ts";
import { type OpenKeyboard, openTerminalKeyboard } from "./keyboard.ts";
import type { LiveDemo } from "./live-demo.ts";
import { momentOf, momentText, paceOf } from "./pace.ts";
import { playUntilOver } from "./play.ts";

export interface Show {
  readonly demo: LiveDemo;
  readonly clock: VirtualClock;
  readonly input: CommandInput<"demo"> & { readonly seed: number };
  readonly kubeconfig: string;
  /** The same in a browser, where it could be served. */
  readonly board: DemoBoard | undefined;
  readonly openKeyboard?: OpenKeyboard | undefined;
}

/** As fast as the machine can, on the way to the next event. */
const skippingSpeed = 100_000;

/** The board on a terminal that is taken over until the demo ends; gives what it showed last. */
export async function showBoard(show: Show): Promise<BoardState> {
  const { demo, clock, input, openKeyboard = openTerminalKeyboard } = show;
  const { io, options } = input;
  const view = new View(show);
  const screen = io.openScreen?.();
  if (screen === undefined) return view.state();
  const draw = (): void => screen.draw(ansiFrame(boardLines(view.state(), screen.size()), io));
  const stop = screen.onResize(draw);
  const keyboard = openKeyboard((key) => {
    view.press(key);
    draw();
  });
  const running = demo.run(() => {});
  const speed = (): number => {
    const now = view.speed();
    show.board?.setRate(now);
    return now;
  };
  const playing = { clock, real: io.clock, speed, onFrame: draw };
  try {
    await playUntilOver(playing, { running, span: options.for, io });
  } finally {
    keyboard.close();
    stop();
    screen.close();
  }
  return view.state();
}

/** What is looked at, how, and at which speed. */
class View {
  readonly #show: Show;
  #controls: Controls = firstControls;

  constructor(show: Show) {
    this.#show = show;
  }

  press(key: Key): void {
    const { demo } = this.#show;
    this.#controls = pressed(this.#controls, key, demo.events());
    if (key === "Interrupt") demo.interrupt();
    // As Ctrl-C does where a terminal acts upon it: a second one does not wait.
    if (key === "Quit") process.kill(process.pid, "SIGINT");
  }

  speed(): number {
    const { demo, input } = this.#show;
    const { paused, times, skipPast } = this.#controls;
    if (paused) return 0;
    if (skipPast !== undefined && demo.events() <= skipPast) return skippingSpeed;
    if (skipPast !== undefined) this.#controls = { ...this.#controls, skipPast: undefined };
    const pulse = demo.pulse();
    return input.options.speed * times * paceOf(momentOf(pulse), pulse);
  }

  state(): BoardState {
    const { demo, kubeconfig, board } = this.#show;
    const { paused, sort, skipPast } = this.#controls;
    const pace = skipPast === undefined ? momentText(momentOf(demo.pulse())) : "to the next event";
    const looks = {
      kubeconfig,
      address: board?.url,
      speed: this.speed(),
      pace,
      paused,
      sort,
      hasKeys: true,
    };
    return { ...demo.picture(), ...looks };
  }
}
