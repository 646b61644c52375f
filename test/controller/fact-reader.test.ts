import { expect, it } from "vitest";
import type { DepartureOptions } from "../../src/controller/departure/departure-options.ts";
import { FactReader } from "../../src/controller/departure/fact-reader.ts";
import { freshMemory } from "../../src/core/next/memory.ts";
import { millis, plus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";
import { pod, startAt } from "../core/drain/drain-scene.ts";
import { aScene, timeAt } from "../core/next/departure-scene.ts";

const refused = () =>
  Promise.reject(new LastcallError("RIGHT_MISSING", "Cannot list pods: forbidden"));

/** A reader that is evaluated at each fact, as a departure does, and wants the pods. */
function podReader(synced: () => Promise<void>) {
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const follows: number[] = [];
  const pods = {
    follow: () => {
      follows.push(clock.monotonic());
      return { synced, refusal: () => undefined, pods: () => [pod("a")], onChange: () => () => {} };
    },
  };
  const options = { clock, rng: () => 0.5, pods } as unknown as DepartureOptions;
  let number = 1;
  const want = () => reader.want([{ name: "pods", since: 0 }], ++number);
  const reader: FactReader = new FactReader(options, {
    ...{ scene: () => aScene({}), memory: () => freshMemory(timeAt(0, 1)) },
    ...{ onFact: () => queueMicrotask(want), onFault: () => undefined },
  });
  want();
  return { clock, reader, follows };
}

it("a refusal of the list of pods is known since it began, however often it is tried", async () => {
  const { clock, reader } = podReader(refused);
  await clock.runUntil(plus(clock.now(), seconds(60)));
  expect(reader.facts.pods).toMatchObject({ kind: "Failed" });
  const { sinceMs = Number.NaN } = reader.facts.pods?.kind === "Failed" ? reader.facts.pods : {};
  expect(clock.monotonic() - sinceMs).toBeGreaterThan(50_000);
  reader.close();
});

it("pods that are listed after a refusal stay known, and are followed once", async () => {
  let isAllowed = false;
  const { clock, reader, follows } = podReader(() => (isAllowed ? Promise.resolve() : refused()));
  await clock.runUntil(plus(clock.now(), seconds(20)));
  isAllowed = true;
  await clock.runUntil(plus(clock.now(), seconds(20)));
  const followed = follows.length;
  await clock.runUntil(plus(clock.now(), seconds(20)));
  expect(follows.length).toBe(followed);
  expect(reader.facts.pods).toMatchObject({ kind: "Known" });
  reader.close();
});

it("a volume that is detached while its claim is looked up does not stay attached", async () => {
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  let volumes = [{ name: "a", volume: "pv-a" }];
  let change = (): void => undefined;
  const attachments = {
    follow: () => ({
      synced: () => Promise.resolve(),
      volumes: () => volumes,
      onChange: (listener: () => void) => {
        change = listener;
        return () => undefined;
      },
    }),
    claimOf: async () => {
      await clock.sleep(seconds(1));
      return "default/data";
    },
  };
  const options = { clock, rng: () => 0.5, attachments } as unknown as DepartureOptions;
  const reader = new FactReader(options, {
    ...{ scene: () => aScene({}), memory: () => freshMemory(timeAt(0, 1)) },
    ...{ onFact: () => undefined, onFault: () => undefined },
  });
  reader.want([{ name: "volumes", since: 0 }], 2);
  await clock.runUntil(plus(clock.now(), millis(500)));
  volumes = [];
  change();
  await clock.runUntil(plus(clock.now(), seconds(5)));
  expect(reader.facts.volumes).toMatchObject({ kind: "Known", value: [] });
  reader.close();
});

it("a read that rests for long after a fault is repeated at once when a notice arrives", async () => {
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const reads: number[] = [];
  const readNode = () => {
    reads.push(clock.monotonic());
    return Promise.reject(new LastcallError("API_UNREACHABLE", "Cannot read: no response"));
  };
  let departure: Parameters<typeof aScene>[0]["departure"] = {};
  const options = { clock, rng: () => 1, readNode } as unknown as DepartureOptions;
  const reader: FactReader = new FactReader(options, {
    ...{ scene: () => aScene({ departure }), memory: () => freshMemory(timeAt(0, 1)) },
    ...{ onFact: () => queueMicrotask(want), onFault: () => undefined },
  });
  const want = () => reader.want([{ name: "nodeNow", since: 0 }], 2);
  want();
  await clock.runUntil(plus(clock.now(), seconds(60)));
  const last = reads.at(-1) ?? 0;
  await clock.runUntil(plus(clock.now(), millis(last + 1000 - clock.monotonic())));
  const before = reads.length;
  departure = { cause: "SpotInterruption", noticedAt: clock.now() };
  want();
  await clock.runUntil(plus(clock.now(), millis(10)));
  expect(reads.length).toBe(before + 1);
  reader.close();
});
