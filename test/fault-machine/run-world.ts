import { createHash } from "node:crypto";
import { minutes, plus, seconds } from "../../src/core/time/time.ts";
import type { Violation } from "./checker.ts";
import { checkers } from "./checker-list.ts";
import { Coverage } from "./coverage.ts";
import { faultTable } from "./fault-table.ts";
import { Stage } from "./stage.ts";
import { lineOf, type TraceEvent } from "./trace.ts";
import { type DepartureObject, phaseOf, View } from "./view.ts";
import type { Fault, World } from "./world.ts";

export interface Run {
  readonly violations: readonly Violation[];
  /** Of every line of the trace, if it was asked for: two runs with the same one are the same. */
  readonly digest: string | undefined;
  readonly events: number;
  readonly departures: number;
  readonly nodeHours: number;
  readonly coverage: Coverage;
}

/** After the faults, so long the policy goes on. */
const calmMinutes = 60;
/** Then it is paused for so long, or until the pods of a last drain have had their grace. */
const leastRestMinutes = 100;
const afterGraceMinutes = 20;
/** What is written after this counts as written at rest. */
const restAfterMinutes = 40;

/** A rule that is broken once is often broken again and again: the first reports are enough. */
const violationsMost = 3;

interface RunOptions {
  /** Ends the run as soon as this rule is broken; for a search. */
  readonly stopAt?: string;
  /** Called with every line of the trace. */
  readonly onLine?: (line: string) => void;
  /** Writing every line takes a tenth of a run. */
  readonly withDigest?: boolean;
}

/** Runs a world to its end, and judges it. */
export async function runWorld(
  world: World,
  { onLine, stopAt, withDigest }: RunOptions = {},
): Promise<Run> {
  const view = new View(world);
  const coverage = new Coverage(view);
  const judges = checkers.map(({ name, start }) => ({ name, judge: start() }));
  const digest = withDigest === true ? createHash("sha256") : undefined;
  const isWritten = digest !== undefined || onLine !== undefined;
  const violations: Violation[] = [];
  let events = 0;
  const see = (event: TraceEvent): void => {
    events += 1;
    if (isWritten) {
      const line = lineOf(event);
      digest?.update(line);
      onLine?.(line);
    }
    view.apply(event);
    coverage.see(event);
    for (const { name, judge } of judges) {
      const what = judge(event, view);
      if (what === undefined) continue;
      const told = violations.filter(({ checker }) => checker === name).length;
      if (told >= violationsMost) continue;
      violations.push({ checker: name, at: event.at, what });
      onLine?.(`>>> ${name}: ${what}`);
    }
  };
  const stage = new Stage(world, see);
  const schedule = new FaultSchedule(stage, world.faults);
  for (const replica of stage.replicas) replica.start();
  const isFound = (): boolean => violations.some(({ checker }) => checker === stopAt);
  const pass = async (span: number): Promise<boolean> => {
    const at = plus(stage.clock.now(), minutes(span));
    if (stopAt !== undefined && (await stage.clock.runUntilDone(isFound, at))) return true;
    await stage.clock.runUntil(at);
    return false;
  };
  let isOver = await pass(world.hours * 60);
  schedule.endAll();
  stage.tell({ kind: "Calm" });
  isOver ||= await pass(calmMinutes);
  stage.patch("policies", "spot", { spec: { paused: true } });
  view.restFrom = stage.clock.now() + minutes(restAfterMinutes);
  const restMinutes = restOf(world);
  if (!isOver) await pass(restMinutes);
  stage.tell({ kind: "End" });
  for (const replica of stage.replicas) replica.stop();
  stage.agents.stopAll();
  await stage.clock.advance(seconds(5));
  stage.cluster.stop();
  const hours = world.hours + (calmMinutes + restMinutes) / 60;
  const nodeHours = hours * world.nodes.length;
  const departures = coverage.departures();
  return { violations, digest: digest?.digest("hex"), events, departures, nodeHours, coverage };
}

function restOf({ workloads }: World): number {
  const graces = workloads.map(({ graceSeconds }) => graceSeconds / 60 + afterGraceMinutes);
  return Math.max(leastRestMinutes, ...graces);
}

/** Begins each fault when its time has come, and ends it when its time is over. */
class FaultSchedule {
  readonly #stage: Stage;
  readonly #ends = new Map<number, () => void>();
  #isOver = false;

  constructor(stage: Stage, faults: readonly Fault[]) {
    this.#stage = stage;
    for (const [index, fault] of faults.entries()) this.#wait(index, fault);
  }

  endAll(): void {
    this.#isOver = true;
    for (const end of [...this.#ends.values()].toReversed()) end();
  }

  #wait(index: number, fault: Fault): void {
    const { start } = fault;
    if ("minute" in start) {
      this.#stage.after(start.minute * 60_000, () => this.#begin(index, fault));
      return;
    }
    let seen = 0;
    const departures = this.#stage.cluster.api.context.store.collection("departures.lastcall.dev");
    const unsubscribe = departures.subscribe(({ type, object, previous }) => {
      const [now, before] = [object, previous] as [DepartureObject, DepartureObject | undefined];
      const comes = phaseOf(now) === start.phase && (before && phaseOf(before)) !== start.phase;
      if (type === "DELETED" || !comes) return;
      seen += 1;
      if (seen < start.nth) return;
      unsubscribe();
      const begin = (): void => this.#begin(index, fault, now.spec.node.name);
      // At once: before the one who wrote the phase learns that it is written.
      if (start.afterSeconds === 0) queueMicrotask(begin);
      else this.#stage.after(start.afterSeconds * 1000, begin);
    });
  }

  #begin(index: number, { kind, lasts, with: fields }: Fault, focus?: string): void {
    if (this.#isOver) return;
    this.#stage.focus = focus;
    this.#stage.tell({ kind: "Fault", what: "begins", index, name: kind });
    const undo = faultTable[kind]?.begin(this.#stage, fields);
    const end = (): void => {
      if (!this.#ends.delete(index)) return;
      undo?.();
      this.#stage.tell({ kind: "Fault", what: "ends", index, name: kind });
    };
    this.#ends.set(index, end);
    if (lasts !== "ever") this.#stage.after(lasts * 60_000, end);
  }
}
