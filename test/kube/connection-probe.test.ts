import { afterEach, describe, expect, it } from "vitest";
import { ConnectionProbe, type ProbeKind } from "../../src/kube/connection-probe.ts";
import { ManualClock } from "../support/manual-clock.ts";

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Each answer after so many milliseconds; `Never`: it hangs until it is given up. */
type Answer = number | "Never" | "Refused";

function setUp(answer: (place: number) => Answer, kind: ProbeKind = "Ping") {
  const clock = new ManualClock();
  const askedAt: number[] = [];
  const silent: { atMs: number; limitMs: number }[] = [];
  const probe = new ConnectionProbe({
    clock,
    ask: async (signal) => {
      askedAt.push(clock.monotonic());
      const now = answer(askedAt.length);
      if (now === "Refused") throw new Error("refused");
      if (now !== "Never") await clock.sleep(now as never, signal);
      else await new Promise((_, reject) => signal.addEventListener("abort", reject));
      return kind;
    },
    onSilent: (limitMs) => silent.push({ atMs: clock.monotonic(), limitMs }),
  });
  const stop = new AbortController();
  const run = probe.run(stop.signal);
  closing.push(
    () => run,
    () => stop.abort(),
  );
  return { clock, askedAt, silent, stop, run };
}

describe("a probe of the connections", () => {
  it("asks each second where that is no request, and every other second where it is one", async () => {
    const pings = setUp(() => 0);
    await pings.clock.advance(4_500);
    expect(pings.askedAt).toEqual([0, 1_000, 2_000, 3_000, 4_000]);
    const requests = setUp(() => 0, "Request");
    await requests.clock.advance(5_500);
    expect(requests.askedAt).toEqual([0, 2_000, 4_000]);
  });

  it("takes two seconds without an answer for a dead connection", async () => {
    const { clock, silent } = setUp((place) => (place === 1 ? "Never" : 0));
    await clock.advance(1_999);
    expect(silent).toEqual([]);
    await clock.advance(2);
    expect(silent).toEqual([{ atMs: 2_001, limitMs: 2_000 }]);
  });

  it("waits twice as long where the next one is not answered either, up to 30 s", async () => {
    const { clock, silent } = setUp(() => "Never");
    await clock.advance(120_000);
    const limits = silent.map(({ limitMs }) => limitMs);
    expect(limits.slice(0, 6)).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  });

  it("is as quick as before once a new connection has answered at once", async () => {
    const { clock, silent } = setUp((place) => (place % 2 === 1 ? "Never" : 5));
    await clock.advance(20_000);
    expect(silent.length).toBeGreaterThan(2);
    expect(new Set(silent.map(({ limitMs }) => limitMs))).toEqual(new Set([2_000]));
  });

  it("gives a server that is slow twice the time that it last took", async () => {
    const { clock, silent } = setUp((place) => (place === 1 ? 1_900 : 3_700));
    await clock.advance(30_000);
    expect(silent).toEqual([]);
  });

  it("leaves a connection that is refused to those who use it", async () => {
    const { clock, silent, askedAt } = setUp(() => "Refused");
    await clock.advance(9_500);
    expect(silent).toEqual([]);
    expect(askedAt).toHaveLength(10);
  });

  it("ends with its signal, also while it waits for an answer", async () => {
    const { clock, silent, stop, run } = setUp(() => "Never");
    await clock.advance(500);
    stop.abort();
    await run;
    await clock.advance(10_000);
    expect(silent).toEqual([]);
  });
});
