import { afterEach, describe, expect, it } from "vitest";
import { ComputeClient, parseComputeEndpoint } from "../../../src/cloud/gcp/compute-client.ts";
import type { TokenSource } from "../../../src/cloud/release/rest-exchange.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { seconds } from "../../../src/core/time/time.ts";
import type { ComputeFault } from "../../support/compute-server.ts";
import {
  type ComputeWorld,
  type ComputeWorldOptions,
  providerIdOf,
  startComputeWorld,
  zone,
} from "../../support/compute-world.ts";

const never = new AbortController().signal;

let world: ComputeWorld;
afterEach(() => world.close());

async function start(options?: ComputeWorldOptions): Promise<void> {
  world = await startComputeWorld(options);
  world.addMachine("n1");
}

function look(providerID = providerIdOf("n1"), signal = never) {
  return world.pass(world.releaser.describe(providerID, signal));
}

/** Returns the tokens in turn, the next one after each `forget`. */
function tokensInTurn(...tokens: string[]): TokenSource {
  return {
    token: () => Promise.resolve(tokens[0]),
    forget: () => void tokens.shift(),
  };
}

describe("a read of a machine", () => {
  it.each([
    { name: "a dropped connection", fault: { kind: "Drop" } },
    { name: "a response that is not JSON", fault: { kind: "Garbage" } },
    { name: "a proxy's 502", fault: { kind: "Garbage", status: 502 } },
    { name: "a rate limit", fault: { kind: "Refuse", status: 403, reason: "rateLimitExceeded" } },
  ] as const)("survives $name three times in a row", async ({ fault }) => {
    await start();
    world.server.failNext(fault, { times: 3 });
    expect(await look()).toMatchObject({ kind: "Present" });
    expect(world.server.log).toHaveLength(4);
    // The pauses double from half a second, and jitter takes up to half of each away.
    expect(world.clock.monotonic()).toBeGreaterThanOrEqual(1_750);
    expect(world.clock.monotonic()).toBeLessThanOrEqual(3_500);
  });

  it("fails with a retryable fault if the fourth attempt fails too", async () => {
    await start();
    world.server.failNext({ kind: "Drop" }, { times: 4 });
    const work = look();
    await expect(work).rejects.toMatchObject({ code: "CLOUD_UNREACHABLE", retryable: true });
    await expect(work).rejects.toThrow(/the connection failed \([A-Z_]+\)/);
    expect(world.server.log).toHaveLength(4);
  });

  it("waits 30 seconds per attempt for a server that never responds", async () => {
    await start();
    world.server.failNext({ kind: "Hang" }, { times: 4 });
    await expect(look()).rejects.toThrow("found no response within 30 s");
    expect(world.clock.monotonic()).toBeGreaterThanOrEqual(4 * 30_000);
    expect(world.clock.monotonic()).toBeLessThanOrEqual(4 * 30_000 + 3_500);
  });

  it("waits for an answer that takes 20 seconds", async () => {
    await start();
    world.server.failNext({ kind: "Slow", afterMs: seconds(20) });
    expect(await look()).toMatchObject({ kind: "Present" });
    expect(world.server.log).toHaveLength(1);
  });

  it("ends at once if the caller aborts while the server hangs", async () => {
    await start();
    world.server.failNext({ kind: "Hang" });
    const caller = new AbortController();
    const outcome = look(undefined, caller.signal).catch((error: unknown) => error);
    // The request hangs on the server, and no time passes on the clock.
    while (world.server.parked === 0) await new Promise((resolve) => setImmediate(resolve));
    const reason = new Error("stop");
    caller.abort(reason);
    expect(await outcome).toBe(reason);
  });

  it("reuses the connections of earlier reads", async () => {
    await start();
    for (let count = 0; count < 20; count++) await look();
    // The pool may open a second one while the first is being returned.
    expect(world.server.connections).toBeLessThanOrEqual(2);
  });
});

describe("a 404", () => {
  it("of the machine means that it is absent", async () => {
    await start();
    expect(await look(providerIdOf("n2"))).toEqual({ kind: "Absent" });
  });

  it.each([
    { name: "a proxy's page", fault: { kind: "Garbage", status: 404 } },
    {
      name: "an unknown project",
      fault: {
        kind: "Refuse",
        status: 404,
        reason: "notFound",
        message: "The resource 'projects/project1' was not found",
      },
    },
    {
      name: "an unknown zone",
      fault: {
        kind: "Refuse",
        status: 404,
        reason: "notFound",
        message: `The resource 'projects/project1/zones/${zone}' was not found`,
      },
    },
  ] satisfies { name: string; fault: ComputeFault }[])(
    "of $name does not mean that the machine is gone",
    async ({ fault }) => {
      await start();
      world.server.failNext(fault, { times: 99 });
      await expect(look()).rejects.toMatchObject({ code: "CLOUD_REFUSED", retryable: true });
    },
  );
});

describe("tokens", () => {
  it("are sent with each request", async () => {
    await start({ tokens: tokensInTurn("good"), server: { tokens: ["good"] } });
    await look();
    expect(world.server.log[0]?.authorization).toBe("Bearer good");
  });

  it("are fetched again once if the cloud rejects one", async () => {
    await start({ tokens: tokensInTurn("stale", "fresh"), server: { tokens: ["fresh"] } });
    expect(await look()).toMatchObject({ kind: "Present" });
    expect(world.server.log.map(({ status }) => status)).toEqual([401, 200]);
  });

  it("that are rejected twice end in a credentials fault", async () => {
    await start({ tokens: tokensInTurn("bad", "worse", "worst"), server: { tokens: ["good"] } });
    await expect(look()).rejects.toMatchObject({ code: "CLOUD_CREDENTIALS", retryable: false });
    expect(world.server.log).toHaveLength(2);
  });

  it("that never arrive count against the request's time limit", async () => {
    const tokens: TokenSource = {
      token: () => new Promise(() => undefined),
      forget: () => undefined,
    };
    await start();
    const { server, clock } = world;
    const endpoint = parseComputeEndpoint(server.endpoint);
    const client = new ComputeClient({ endpoint, tokens, fetch, clock, rng: seededRng(1) });
    const call = { method: "GET", path: "/p", action: "look", permission: "none" } as const;
    await expect(world.pass(client.send(call, never))).rejects.toThrow("no response within 30 s");
    expect(server.log).toEqual([]);
  });

  it("are in no error message, whatever goes wrong", async () => {
    const faults: ComputeFault[] = [
      { kind: "Drop" },
      { kind: "Hang" },
      { kind: "Garbage" },
      { kind: "Garbage", status: 500 },
      { kind: "Refuse", status: 403, reason: "forbidden" },
      { kind: "Refuse", status: 401, reason: "authError" },
      { kind: "Refuse", status: 302, reason: "" },
      { kind: "Refuse", status: 400, reason: "invalid" },
    ];
    for (const fault of faults) {
      await start({ tokens: { token: async () => "ya29.secret", forget: () => undefined } });
      world.server.failNext(fault, { times: 99 });
      const error = await look().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Error);
      const { message, stack, cause } = error as Error;
      expect(`${message} ${stack} ${JSON.stringify(cause)}`).not.toContain("ya29.secret");
      await world.close();
    }
  });
});

describe("an endpoint", () => {
  it.each([
    ["https://compute.googleapis.com", "https://compute.googleapis.com", false],
    ["https://compute.googleapis.com/", "https://compute.googleapis.com", false],
    ["https://proxy.internal:8443/gce/", "https://proxy.internal:8443/gce", false],
    ["http://127.0.0.1:8090", "http://127.0.0.1:8090", true],
    ["http://localhost:8090/", "http://localhost:8090", true],
    ["http://[::1]:8090", "http://[::1]:8090", true],
    ["https://127.0.0.1:8443", "https://127.0.0.1:8443", false],
  ])("%s is read as %s, plain loopback: %s", (text, baseUrl, loopback) => {
    expect(parseComputeEndpoint(text)).toEqual({ baseUrl, loopback });
  });

  it.each([
    "",
    "compute.googleapis.com",
    "ftp://127.0.0.1",
    "http://compute.googleapis.com",
    "http://127.0.0.1.example.com",
    "http://localhost.example.com",
    "https://host/?key=1",
  ])("%j is rejected: a token would cross a network in clear text or go nowhere", (text) => {
    expect(() => parseComputeEndpoint(text)).toThrow(
      /^Cannot use --gcp-endpoint: found .*, expected an https URL, or http on a loopback address$/,
    );
  });

  it("with a password is rejected without repeating it", () => {
    const parse = () => parseComputeEndpoint("https://me:hunter2@compute.googleapis.com");
    expect(parse).toThrow("found credentials in the URL");
    expect(parse).not.toThrow("hunter2");
  });
});
