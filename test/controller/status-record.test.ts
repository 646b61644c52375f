import { expect, it } from "vitest";
import type { DepartureOptions } from "../../src/controller/departure/departure-options.ts";
import { DepartureTelemetry } from "../../src/controller/departure/departure-telemetry.ts";
import { OpenState } from "../../src/controller/departure/open-state.ts";
import { Refusals } from "../../src/controller/departure/refusals.ts";
import { StatusRecord } from "../../src/controller/departure/status-record.ts";
import { StatusWriter } from "../../src/controller/departure/status-writer.ts";
import type { DepartureWriter } from "../../src/controller/departure-writer.ts";
import type { Departure, DepartureStatus } from "../../src/core/departure/departure.ts";
import { minutes, plus } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { startAt } from "../core/drain/drain-scene.ts";
import { aDeparture, aNode, aPolicy } from "../core/fleet-builder.ts";

type Change = (fresh: Departure) => DepartureStatus | undefined;

/** A departure in its drain, and a cluster that does what it is told before its answer is lost. */
function stage() {
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const departure = aDeparture(aNode("n1"), { cause: "Planned", status: { phase: "Draining" } });
  let there = departure;
  let isAnswerLost = false;
  let drops = 0;
  let guarded: Partial<Departure> = {};
  const writer = {
    async guard(one: Departure) {
      there = { ...there, ...guarded };
      return { ...one, ...guarded };
    },
    async record(based: Departure, change: Change) {
      const isCurrent = based.resourceVersion === there.resourceVersion;
      const fresh = isCurrent ? based : there;
      // What was sent on an old resourceVersion is refused, and decided again on what is read.
      if (!isCurrent) change(based);
      const status = change(fresh);
      if (status === undefined) return fresh;
      there = { ...there, status, resourceVersion: `${Number(there.resourceVersion) + 1}` };
      if (isAnswerLost) throw new LastcallError("API_UNREACHABLE", "no response");
      return there;
    },
  } as unknown as DepartureWriter;
  const telling = { log: { warn() {}, error() {} }, metrics: { count() {} } };
  const options = { ...telling, clock, rng: () => 0.5, writer } as unknown as DepartureOptions;
  const statusWriter = new StatusWriter(options);
  const state = new OpenState({ departure, policy: aPolicy() }, { clock, statusWriter });
  const telemetry = new DepartureTelemetry(options, clock);
  const nothing = () => undefined;
  const record = new StatusRecord({
    ...{ options, state, statusWriter, signal: new AbortController().signal },
    refusals: new Refusals(options, state, telemetry),
    ...{ onWritten: nothing, onLater: nothing, onLeaseLost: nothing, onGone: nothing },
    ...{ onUnstarted: nothing, onDropped: () => (drops += 1) },
  });
  const write = async (left: number, lost: boolean) => {
    isAnswerLost = lost;
    const drain = { total: 9, left, evicted: 0, forced: 0, waiting: 0, blocked: 0, cut: 0 };
    state.remember({ intended: { ...state.newest, drain } });
    await clock.runUntil(plus(clock.now(), minutes(1)));
    record.write();
    await record.settled();
  };
  const meetsMeanwhile = (changes: Partial<Departure>) => {
    guarded = { ...changes, resourceVersion: "8" };
  };
  const othersWrite = (status: DepartureStatus) => {
    there = { ...there, status, resourceVersion: "8" };
  };
  const actionWrites = () =>
    statusWriter.write(state.seen, ({ status }) => ({ ...status, actions: [] }));
  return {
    ...{ state, record, write, meetsMeanwhile, othersWrite, actionWrites },
    ...{ there: () => there.status.drain?.left, drops: () => drops },
    phase: () => there.status.phase,
  };
}

const rollingBack: DepartureStatus = { phase: "RollingBack", timeline: [] };

it("a status that arrived without an answer is our own, however far the drain is by then", async () => {
  const one = stage();
  one.state.remember({ own: ["pod-1"] });
  await one.write(5, true);
  await one.write(3, true);
  await one.write(1, false);
  expect(one.there()).toBe(1);
  expect(one.state.memory).toMatchObject({ own: ["pod-1"], intended: undefined });
  expect(one.drops()).toBe(0);
});

it("a hold that the finalizer met comes before the status", async () => {
  const one = stage();
  one.meetsMeanwhile({ hold: true });
  await one.write(5, false);
  expect(one.there()).toBeUndefined();
  expect(one.drops()).toBe(1);
  expect(one.state.seen.hold).toBe(true);
  await one.write(5, false);
  expect(one.there()).toBe(5);
});

it.each([
  ["finalizer", (one: ReturnType<typeof stage>) => one.meetsMeanwhile({ status: rollingBack })],
  [
    "write of an action",
    async (one: ReturnType<typeof stage>) => {
      one.othersWrite(rollingBack);
      await one.actionWrites();
    },
  ],
] as const)("a status that the %s met is decided on, and not replaced", async (_, meets) => {
  const one = stage();
  one.state.remember({ own: ["pod-1"] });
  await meets(one);
  await one.write(5, false);
  expect(one.phase()).toBe("RollingBack");
  expect(one.state.memory.own).toEqual([]);
  expect(one.drops()).toBe(1);
  expect(one.state.newest.phase).toBe("RollingBack");
});

it("what the write of an action met is decided on although nothing else is to be written", async () => {
  const one = stage();
  one.state.remember({ own: ["pod-1"] });
  await one.actionWrites();
  one.record.seeOthers();
  expect(one.state.memory.own).toEqual(["pod-1"]);
  one.othersWrite(rollingBack);
  await one.actionWrites();
  one.record.seeOthers();
  expect(one.state.memory.own).toEqual([]);
  expect(one.drops()).toBe(1);
});

it("a label that somebody sets meanwhile delays no status", async () => {
  const one = stage();
  one.state.remember({ own: ["pod-1"] });
  one.othersWrite(one.state.recorded.status);
  await one.write(5, false);
  expect(one.there()).toBe(5);
  expect(one.drops()).toBe(0);
});
