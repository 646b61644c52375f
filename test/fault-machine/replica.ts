import { assembleController } from "../../src/cli/assemble/assemble-controller.ts";
import type { Log, Metrics } from "../../src/contracts/telemetry.ts";
import { seededRng } from "../../src/core/chance/chance.ts";
import { millis } from "../../src/core/time/time.ts";
import { LeaderLease } from "../../src/kube/lease/leader-lease.ts";
import { onServerTime } from "../../src/kube/server-clock.ts";
import { processActions } from "./process-actions.ts";
import { ProcessApi } from "./process-api.ts";
import { ProcessClock } from "./process-clock.ts";
import { ProcessCloud } from "./process-cloud.ts";
import type { Surroundings } from "./surroundings.ts";

const noMetrics: Metrics = { count: () => {}, set: () => {}, observe: () => {} };

/** A kubelet starts a container that has ended again after this, as after a first crash. */
const restartMs = 10_000;
/** A loop without a pause would go on at the same instant for ever: somebody kills it. */
const afterLoopMs = 300_000;

interface Incarnation {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly stop: AbortController;
  isAlive: boolean;
}

/** Sprung by the nth write to a path that is meant. */
interface WriteTrap {
  readonly when: "Before" | "After";
  readonly nth: number;
  readonly isMeant: (path: string) => boolean;
  readonly onTrap: () => void;
}

/** One replica of the controller: a process that is killed, paused and started again. */
export class Replica {
  readonly #stage: Surroundings;
  readonly #index: number;
  #starts = 0;
  #now: Incarnation | undefined;
  #offsetMs = 0;
  #killedFor = 0;
  #trap: WriteTrap | undefined;
  #trapped = 0;

  constructor(stage: Surroundings, index: number) {
    this.#stage = stage;
    this.#index = index;
  }

  start(): void {
    if (this.#now?.isAlive || this.#killedFor > 0) return;
    this.#starts += 1;
    const name = `controller-${this.#index}.${this.#starts}`;
    const clock = new ProcessClock(this.#stage.clock, this.#offsetMs);
    const its: Incarnation = { name, clock, stop: new AbortController(), isAlive: true };
    this.#now = its;
    this.#stage.tell({ kind: "Process", process: name, what: "starts" });
    void this.#run(its).then(
      () => this.#ended(its, "ends"),
      (error: unknown) => this.#ended(its, `fails: ${String(error)}`),
    );
  }

  /** It does nothing more from now on, not even what a process does when it is asked to stop. */
  kill(): void {
    const its = this.#now;
    if (!its?.isAlive) return;
    its.isAlive = false;
    its.clock.die();
    its.stop.abort(new Error("killed"));
    this.#stage.tell({ kind: "Process", process: its.name, what: "is killed" });
  }

  /** Killed, and kept from starting until the returned function is called. */
  killWhile(): () => void {
    this.#killedFor += 1;
    this.kill();
    return () => {
      this.#killedFor -= 1;
      this.start();
    };
  }

  /** Killed around one of its next writes. */
  killAtWrite(trap: WriteTrap | undefined): void {
    this.#trap = trap;
    this.#trapped = 0;
  }

  pause(): void {
    this.#now?.clock.pause();
    this.#stage.tell({ kind: "Process", process: this.#now?.name ?? "", what: "pauses" });
  }

  resume(): void {
    this.#now?.clock.resume();
    this.#stage.tell({ kind: "Process", process: this.#now?.name ?? "", what: "resumes" });
  }

  /** Its machine's wall clock is set; later starts have it, too. */
  stepClock(byMs: number): void {
    this.#offsetMs += byMs;
    this.#now?.clock.step(byMs);
    const what = `has its clock set by ${byMs / 1000} s`;
    this.#stage.tell({ kind: "Process", process: this.#now?.name ?? "", what });
  }

  /** Asks it to stop, as SIGTERM does. */
  stop(): void {
    this.#killedFor += 1;
    this.#now?.stop.abort(new Error("stopped"));
  }

  #run(its: Incarnation): Promise<void> {
    const stage = this.#stage;
    const { name: process, clock, stop } = its;
    const { seed } = stage.world;
    const connection = new ProcessApi({
      ...{ stage, process, clock },
      onWrite: (when, path) => this.#onWrite(when, path),
      onBusyLoop: () => {
        stage.tell({ kind: "Process", process, what: "loops without a pause" });
        stage.after(afterLoopMs, this.killWhile());
      },
    });
    const cloud = new ProcessCloud({ stage, process, clock });
    // As `lastcall run` does.
    const { api, clock: serverClock } = onServerTime(connection, clock);
    const rng = seededRng(seed * 31 + this.#index * 7 + this.#starts);
    const lease = { api, clock, rng, namespace: "lastcall", name: "lastcall", identity: process };
    const { controller } = assembleController({
      ...{ api, clock: serverClock, rng, metrics: noMetrics },
      ...{ namespace: "lastcall", identity: process },
      log: this.#log(process),
      leadership: new LeaderLease(lease),
      releaserFor: () => cloud,
      actionPorts: processActions({ stage, process, clock }),
      launchTimes: cloud,
      dryRun: false,
    });
    return controller.run(stop.signal);
  }

  #log(process: string): Log {
    const log = (event: string, fields: object = {}): void => {
      this.#stage.tell({ kind: "Log", process, text: `${event} ${JSON.stringify(fields)}` });
    };
    return { debug: () => {}, info: log, warn: log, error: log };
  }

  #onWrite(when: "Before" | "After", path: string): void {
    const trap = this.#trap;
    if (trap === undefined || trap.when !== when || !trap.isMeant(path)) return;
    this.#trapped += 1;
    if (this.#trapped < trap.nth) return;
    this.#trap = undefined;
    trap.onTrap();
  }

  #ended(its: Incarnation, how: string): void {
    if (!its.isAlive) return;
    its.isAlive = false;
    this.#stage.tell({ kind: "Process", process: its.name, what: how });
    void this.#stage.clock.sleep(millis(restartMs)).then(() => this.start());
  }
}
