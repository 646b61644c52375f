import { readFileSync } from "node:fs";
import { request as plainRequest } from "node:http";
import { Agent, request } from "node:https";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KeyPair } from "../../src/contracts/http-route.ts";
import { seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { serve } from "../../src/server/http-server.ts";
import { MetricsServer } from "../../src/server/metrics-server.ts";
import { freePort } from "../support/free-port.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { waitUntil } from "../support/wait-until.ts";

const fixtures = join(import.meta.dirname, "../kube/fixtures");
const pairOf = (name: string): KeyPair => ({
  cert: readFileSync(join(fixtures, `${name}.cert.pem`), "utf8"),
  key: readFileSync(join(fixtures, `${name}.key.pem`), "utf8"),
});
const first = pairOf("server");
const second = pairOf("other-name");

let clock: ManualClock;
let port: number;
let troubles: unknown[];
let pair: KeyPair | LastcallError | undefined;
let server: MetricsServer;
let opened: number;

beforeEach(async () => {
  clock = new ManualClock();
  port = await freePort();
  troubles = [];
  opened = 0;
});
afterEach(() => server.close());

function make(readPair?: () => Promise<KeyPair>): MetricsServer {
  server = new MetricsServer({
    address: `127.0.0.1:${port}`,
    routes: { "/metrics": () => ({ status: 200, text: "up 1\n" }) },
    serve: (...how) => {
      opened += 1;
      return serve(...how);
    },
    readPair,
    clock,
    onError: (error) => troubles.push(error),
  });
  return server;
}

async function reading(): Promise<KeyPair> {
  if (pair === undefined || pair instanceof Error) throw pair;
  return pair;
}

/** The server's certificate name and its response, each time over a new connection. */
function ask(): Promise<{ readonly name: string; readonly text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ name: string; text: string }>();
  const agent = new Agent({ keepAlive: false, rejectUnauthorized: false });
  const asking = request({ host: "127.0.0.1", port, path: "/metrics", agent }, (answer) => {
    const { subject } = (answer.socket as TLSSocket).getPeerCertificate();
    let text = "";
    answer.setEncoding("utf8").on("data", (part: string) => {
      text += part;
    });
    answer.on("end", () => resolve({ name: String(subject.CN), text }));
  });
  asking.on("error", reject);
  asking.end();
  return promise;
}

function until(what: string, holds: () => Promise<boolean>): Promise<boolean> {
  return waitUntil(holds, { what, timeoutMs: 5000, intervalMs: 5 });
}

describe("metrics over TLS", () => {
  it("are served with the configured certificate, and not in clear text", async () => {
    pair = first;
    await make(reading).listen();
    expect(await ask()).toEqual({ name: "lastcall test server", text: "up 1\n" });
    const { promise, resolve } = Promise.withResolvers<string | number | undefined>();
    plainRequest({ host: "127.0.0.1", port, path: "/metrics" }, ({ statusCode }) =>
      resolve(statusCode),
    )
      .on("error", ({ code }: NodeJS.ErrnoException) => resolve(code))
      .end();
    expect(await promise).not.toBe(200);
  });

  it("are served with a new certificate at most half a minute later", async () => {
    pair = first;
    const made = make(reading);
    await made.listen();
    made.keep();
    pair = second;
    await clock.advance(seconds(30));
    await until("it is the new one", async () => (await ask()).name === "elsewhere");
    expect(troubles).toEqual([]);
  });

  it("open the listener once as long as the certificate is the same", async () => {
    pair = first;
    const made = make(reading);
    await made.listen();
    made.keep();
    await clock.advance(seconds(300));
    expect(opened).toBe(1);
  });

  it("keep the old certificate until the new one can be read", async () => {
    pair = first;
    const made = make(reading);
    await made.listen();
    made.keep();
    const fault = new LastcallError("CONFIG_INVALID", "half of it is written");
    pair = fault;
    await clock.advance(seconds(60));
    expect(troubles).toEqual([fault, fault]);
    expect((await ask()).name).toBe("lastcall test server");
    pair = second;
    await clock.advance(seconds(30));
    await until("it is the new one", async () => (await ask()).name === "elsewhere");
  });

  it("are not served if the first certificate cannot be read", async () => {
    pair = new LastcallError("CONFIG_INVALID", "none is there");
    await expect(make(reading).listen()).rejects.toBe(pair);
    await expect(ask()).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });
});

describe("an address in use by another program", () => {
  let other: Server;
  beforeEach(async () => {
    other = createServer();
    const listening = Promise.withResolvers<void>();
    other.listen(port, "127.0.0.1", listening.resolve);
    await listening.promise;
  });
  afterEach(() => void other.close());

  it("is reported, and used as soon as it is free", async () => {
    const made = make();
    await expect(made.listen()).rejects.toMatchObject({ code: "PORT_TAKEN" });
    made.keep();
    await clock.advance(seconds(30));
    await until("it is told", async () => troubles.length === 1);
    expect(made.port).toBeUndefined();
    const closed = Promise.withResolvers<unknown>();
    other.close(closed.resolve);
    await closed.promise;
    await clock.advance(seconds(30));
    await until("it listens", async () => made.port === port);
    expect(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).toBe("up 1\n");
  });
});

it("a plain-text server that listens does not check again", async () => {
  const made = make();
  await made.listen();
  made.keep();
  await clock.advance(seconds(300));
  expect(clock.sleeping).toBe(0);
  expect(opened).toBe(1);
});

it("a server closed while it reads a certificate does not listen again", async () => {
  const slow = Promise.withResolvers<KeyPair>();
  pair = first;
  let looks = 0;
  const made = make(() => {
    looks += 1;
    return looks === 1 ? reading() : slow.promise;
  });
  await made.listen();
  made.keep();
  await clock.advance(seconds(30));
  const closing = made.close();
  slow.resolve(second);
  await closing;
  await expect(ask()).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
