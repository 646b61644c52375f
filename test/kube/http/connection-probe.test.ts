import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { createSecureContext, type TLSSocket } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import {
  ConnectionProbe,
  PingSession,
  type ProbeKind,
} from "../../../src/kube/http/connection-probe.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/**
 * A number: the response takes this many milliseconds. `Never`: no response until the attempt is
 * given up. `Reconnected`: an immediate response on a new connection, as the previous one was
 * closed.
 */
type Answer = number | "Never" | "Refused" | "Reconnected";

function setUp(answer: (place: number) => Answer, kind: ProbeKind = "Ping") {
  const clock = new ManualClock();
  const askedAt: number[] = [];
  const dead: { atMs: number; silentMs: number; found: string }[] = [];
  const silent: { atMs: number; silentMs: number }[] = [];
  let isOpen = false;
  const probe = new ConnectionProbe({
    clock,
    ask: async (signal) => {
      askedAt.push(clock.monotonic());
      const now = answer(askedAt.length);
      const connection = isOpen && now !== "Reconnected" ? "Kept" : "New";
      isOpen = typeof now === "number" || now === "Reconnected";
      if (now === "Refused") throw new Error("refused");
      if (typeof now === "number") await clock.sleep(now as never, signal);
      if (now === "Never") await new Promise((_, fail) => signal.addEventListener("abort", fail));
      return { kind, connection };
    },
    onDead: (one) => dead.push({ atMs: clock.monotonic(), ...one }),
    onSilent: (silentMs) => silent.push({ atMs: clock.monotonic(), silentMs }),
  });
  const stop = new AbortController();
  const run = probe.run(stop.signal);
  closing.push(
    () => run,
    () => stop.abort(),
  );
  return { clock, askedAt, dead, silent, stop, run };
}

describe("a probe of the connections", () => {
  it("is sent every second as a ping, and every other second as a request", async () => {
    const pings = setUp(() => 0);
    await pings.clock.advance(4_500);
    expect(pings.askedAt).toEqual([0, 1_000, 2_000, 3_000, 4_000]);
    const requests = setUp(() => 0, "Request");
    await requests.clock.advance(5_500);
    expect(requests.askedAt).toEqual([0, 2_000, 4_000]);
  });

  it("declares a connection dead after two seconds without a response, once a new one responds", async () => {
    const { clock, dead } = setUp((place) => (place === 1 ? "Never" : 20));
    await clock.advance(2_020);
    expect(dead).toEqual([]);
    await clock.advance(1);
    expect(dead).toEqual([{ atMs: 2_021, silentMs: 2_000, found: "Silent" }]);
    await clock.advance(60_000);
    expect(dead).toHaveLength(1);
  });

  it("reports a silent server within 4 s, once until it answers again", async () => {
    const answers = (place: number): Answer =>
      place === 2 || place === 3 || place === 6 ? "Never" : 20;
    const { clock, silent } = setUp(answers, "Request");
    await clock.advance(60_000);
    expect(silent.map(({ silentMs }) => silentMs)).toEqual([2_000, expect.any(Number)]);
    expect(silent[0]?.atMs).toBeLessThan(4_100);
  });

  it.each<[ProbeKind, number]>([
    ["Ping", 1_900],
    ["Request", 1_900],
  ])(
    "reports within 4 s that a server is silent which was slow before: %s after %d ms",
    async (kind, slowMs) => {
      const { clock, silent } = setUp((place) => (place <= 3 ? slowMs : "Never"), kind);
      const restMs = kind === "Ping" ? 1_000 : 2_000;
      const lastAnswerMs = 3 * slowMs + 2 * restMs;
      await clock.advance(lastAnswerMs + 4_100);
      const after = silent.filter(({ atMs }) => atMs > lastAnswerMs);
      expect(after).toEqual([{ atMs: expect.any(Number), silentMs: 4_000 - restMs }]);
      await clock.advance(60_000);
      expect(silent.filter(({ atMs }) => atMs > lastAnswerMs)).toHaveLength(1);
    },
  );

  it("spares the connections if the server is as slow on a new one", async () => {
    const { clock, dead } = setUp((place) => (place === 1 ? "Never" : 1_000));
    await clock.advance(60_000);
    expect(dead).toEqual([]);
  });

  it("is repeated until a new connection responds fast, however slow the first responses are", async () => {
    const answers: readonly Answer[] = [0, "Never", 1_500, 1_500, 20];
    const { clock, dead } = setUp((place) => answers[place - 1] ?? 20);
    await clock.advance(60_000);
    expect(dead).toEqual([{ atMs: 8_021, silentMs: 2_000, found: "Silent" }]);
  });

  it("doubles its timeout for each new connection without a response, up to 30 s, and reports once", async () => {
    const { clock, askedAt, dead } = setUp((place) => (place <= 6 ? "Never" : 20));
    await clock.advance(91_000);
    const limits = askedAt.slice(0, 7).map((at, place) => (askedAt[place + 1] ?? at) - at - 1);
    expect(limits.slice(0, 6)).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(dead).toEqual([{ atMs: 90_026, silentMs: 2_000, found: "Silent" }]);
  });

  it("declares all connections dead that are older than its own, if that was lost", async () => {
    const { clock, dead } = setUp((place) => (place === 4 ? "Reconnected" : 0));
    await clock.advance(60_000);
    expect(dead).toEqual([{ atMs: 3_000, silentMs: 2_000, found: "Lost" }]);
  });

  it("notices a lost connection even if the first attempt after it fails", async () => {
    const { clock, dead } = setUp((place) => (place === 4 ? "Refused" : 0));
    await clock.advance(60_000);
    expect(dead).toEqual([{ atMs: 4_000, silentMs: 2_000, found: "Lost" }]);
  });

  it("declares no more connections dead if the server keeps none open", async () => {
    const { clock, dead } = setUp(() => "Reconnected");
    await clock.advance(60_000);
    expect(dead.map(({ atMs }) => atMs)).toEqual([1_000, 2_000]);
  });

  it("has its short timeout back once a new connection has responded at once", async () => {
    const { clock, dead } = setUp((place) => (place % 2 === 1 ? "Never" : 5));
    await clock.advance(20_000);
    expect(dead.length).toBeGreaterThan(2);
    expect(new Set(dead.map(({ silentMs }) => silentMs))).toEqual(new Set([2_000]));
  });

  it("allows a slow server twice the time of its last response", async () => {
    const { clock, askedAt } = setUp((place) => (place === 1 ? 1_900 : 3_700));
    await clock.advance(30_000);
    // None was given up: each is sent a second after the previous response.
    expect(askedAt.slice(0, 4)).toEqual([0, 2_900, 7_600, 12_300]);
  });

  it("leaves a refused connection to the requests that use it", async () => {
    const { clock, dead, askedAt } = setUp(() => "Refused");
    await clock.advance(9_500);
    expect(dead).toEqual([]);
    expect(askedAt).toHaveLength(10);
  });

  it("ends with its signal, even while it waits for a response", async () => {
    const { clock, dead, stop, run } = setUp(() => "Never");
    await clock.advance(500);
    stop.abort();
    await run;
    await clock.advance(10_000);
    expect(dead).toEqual([]);
  });
});

describe("a ping", () => {
  const secureContext = createSecureContext();
  const own = { key: fixture("server.key.pem"), cert: fixture("server.cert.pem") };

  function fixture(name: string): Buffer {
    return readFileSync(new URL(`../fixtures/${name}`, import.meta.url));
  }

  /** A front end with a certificate for each of `names`, but none for a client without SNI. */
  async function startFrontEnd(names: readonly string[]) {
    const forName = createSecureContext(own);
    const server = createSecureServer({
      ...(names.length === 0 ? own : {}),
      SNICallback: (name, done) => done(null, names.includes(name) ? forName : undefined),
    });
    const asked: TLSSocket["servername"][] = [];
    server.on("secureConnection", (socket: TLSSocket) => asked.push(socket.servername));
    server.listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    closing.push(() => server.close());
    return { port: (server.address() as AddressInfo).port, asked };
  }

  it.each([
    ["asks for the server's name", "localhost", {}, "localhost"],
    ["asks for the name in the kubeconfig", "localhost", { servername: "a.test" }, "a.test"],
    ["of an address asks for that name, too", "127.0.0.1", { servername: "a.test" }, "a.test"],
    ["of an address asks for no name", "127.0.0.1", {}, undefined],
  ])("%s", async (_, host, given, name) => {
    const { port, asked } = await startFrontEnd(name === undefined ? [] : [name]);
    const pings = new PingSession(new URL(`https://${host}:${port}`));
    closing.push(() => pings.close());
    const tls = { secureContext, rejectUnauthorized: false, ...given };
    expect(await pings.ping(tls, AbortSignal.timeout(5_000))).toBe("New");
    expect(asked).toEqual([name ?? false]);
  });
});
