import { readFileSync } from "node:fs";
import { request } from "node:https";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { formatInstant, instant } from "../../src/core/time/time.ts";
import { AgentProcess } from "../support/agent-process.ts";
import { AwsMetadataServer } from "../support/aws-metadata-server.ts";
import { freePort } from "../support/free-port.ts";
import { waitUntil } from "../support/wait-until.ts";

/**
 * The agent's process without a cluster, run by Node or by the runtime in E2E_AGENT_RUNTIME.
 * Only its machine's metadata service exists.
 */
let metadata: AwsMetadataServer;
let agent: AgentProcess;
let url: string;

beforeEach(async () => {
  metadata = await new AwsMetadataServer(() => instant(Date.now())).start();
  const address = `127.0.0.1:${await freePort()}`;
  url = `http://${address}/notice`;
  agent = new AgentProcess({
    ...{ nodeName: "n1", metadataUrl: metadata.url, apiUrl: "https://127.0.0.1:1" },
    ...{ caFile: "", token: "none", flags: [`--notice-address=${address}`] },
  });
  await until("the agent listens", async () => agent.said("listening"));
});
afterEach(async () => {
  await agent.stop();
  await metadata.stop();
});

function until(what: string, holds: () => Promise<boolean>): Promise<boolean> {
  const signal = new AbortController().signal;
  return waitUntil(holds, { what, timeoutMs: 15_000, signal, intervalMs: 20 });
}

function interrupt(): string {
  const time = formatInstant(instant(Date.now() + 120_000));
  metadata.values.set("spot/instance-action", JSON.stringify({ action: "terminate", time }));
  return time;
}

async function* eventsOf(response: Response): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(bytes, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1];
      text = text.slice(end + 2);
      if (data !== undefined) yield JSON.parse(data);
    }
  }
}

describe("the agent's notice endpoint", () => {
  it("serves its machine's notice as JSON and as events, even without a cluster", async () => {
    const plain = await fetch(url);
    expect(plain.headers.get("content-type")).toContain("application/json");
    expect(await plain.json()).toEqual({ notice: null });
    const leaving = new AbortController();
    const headers = { accept: "text/event-stream" };
    const events = eventsOf(await fetch(url, { headers, signal: leaving.signal }));
    expect((await events.next()).value).toEqual({ notice: null });
    const deadlineAt = interrupt();
    const told = { cause: "SpotInterruption", deadlineAt };
    expect((await events.next()).value).toMatchObject({ notice: told });
    expect(await (await fetch(url)).json()).toMatchObject({ notice: told });
    leaving.abort();
  });

  it("returns 404 for POST and for other paths", async () => {
    expect((await fetch(url, { method: "POST", body: "{}" })).status).toBe(404);
    expect((await fetch(new URL("/metrics", url))).status).toBe(404);
  });

  it("does not keep the agent from exiting while a client listens", async () => {
    const response = await fetch(url, { headers: { accept: "text/event-stream" } });
    expect(await agent.stop()).toBe(0);
    await response.text().catch(() => {});
  });
});

describe("the agent on a node whose ports other programs share", () => {
  let other: Server;
  let taken: string;
  let second: AgentProcess | undefined;

  beforeEach(async () => {
    const port = await freePort();
    taken = `127.0.0.1:${port}`;
    other = createServer();
    const listening = Promise.withResolvers<void>();
    other.listen(port, "127.0.0.1", listening.resolve);
    await listening.promise;
  });
  afterEach(async () => {
    await second?.stop();
    second = undefined;
    other.close();
  });

  function start(flags: readonly string[]): AgentProcess {
    second = new AgentProcess({
      ...{ nodeName: "n1", metadataUrl: metadata.url, apiUrl: "https://127.0.0.1:1" },
      ...{ caFile: "", token: "none", flags },
    });
    return second;
  }

  it("still watches its machine if another program has the metrics address", async () => {
    const started = start([`--metrics-address=${taken}`]);
    await until("it listens to its machine", async () => started.said("listening"));
    expect(started.log.join("\n")).toContain("PORT_TAKEN");
  });

  it("exits with code 1 if another program has the health address", async () => {
    const started = start([`--health-address=${taken}`]);
    expect(await started.ended).toBe(1);
    expect(started.log.join("\n")).toContain(taken);
  });

  it("serves its metrics over TLS", async () => {
    const fixtures = join(import.meta.dirname, "../kube/fixtures");
    const [cert, key] = ["server.cert.pem", "server.key.pem"].map((name) => join(fixtures, name));
    const address = `127.0.0.1:${await freePort()}`;
    const tls = [`--metrics-cert-file=${cert}`, `--metrics-key-file=${key}`];
    const started = start([`--metrics-address=${address}`, ...tls]);
    await until("it listens to its machine", async () => started.said("listening"));
    const ca = readFileSync(cert ?? "", "utf8");
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    request(`https://${address}/metrics`, { ca }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    })
      .on("error", reject)
      .end();
    expect(await promise).toBe(200);
  });
});
