import type { DemoPicture, Moment } from "../../board/demo-picture.ts";
import { type Controls, firstControls, type Key, pressed } from "./controls.ts";
import type { LiveDemo } from "./live-demo.ts";
import { momentOf, paceOf } from "./pace.ts";

interface DirectorOptions {
  readonly demo: Pick<LiveDemo, "events" | "interrupt" | "picture" | "pulse">;
  /** `--speed`: how many times faster than real time where nothing else is said. */
  readonly speed: number;
  /** Whether the clock slows down where something happens; for plain lines it does not. */
  readonly isPaced: boolean;
}

/** How fast the demo runs, and what its keys do: one for the terminal and for every browser. */
export class Director {
  readonly #options: DirectorOptions;
  #controls: Controls = firstControls;

  constructor(options: DirectorOptions) {
    this.#options = options;
  }

  get sort(): Controls["sort"] {
    return this.#controls.sort;
  }

  press(key: Key): void {
    const { demo } = this.#options;
    this.#controls = pressed(this.#controls, key, demo.events());
    if (key === "Interrupt") demo.interrupt();
  }

  /** How many times faster than real time the model is to run; 0 while it stands. */
  speed(): number {
    return this.#now().speed;
  }

  picture(): DemoPicture {
    const { paused } = this.#controls;
    return { ...this.#options.demo.picture(), ...this.#now(), paused };
  }

  /** Asked at every step of the model, so it looks at the fleets but once. */
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
