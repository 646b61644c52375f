import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { parseActionHosts } from "../../src/actions/action-hosts.ts";
import { firingAlerts } from "../../src/actions/alertmanager.ts";
import { HttpSender } from "../../src/actions/http-sender.ts";
import { seconds } from "../../src/core/time/time.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { type Script, ScriptedServer } from "../support/scripted-server.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Recorded {
  readonly path: string;
  readonly status: number;
  readonly body: unknown;
}

const recorded: readonly Recorded[] = JSON.parse(
  readFileSync(new URL("../data/alertmanager/alerts.json", import.meta.url), "utf8"),
);

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A sender for which every name resolves to loopback. */
function senderOf(hosts: string): HttpSender {
  const resolve = async () => [{ address: "127.0.0.1", family: 4 }];
  return new HttpSender({ allowed: parseActionHosts(hosts), env: {}, resolve });
}

async function ask(
  script: Script,
  about: {
    readonly matchers?: readonly string[];
    readonly prefix?: string;
    /** Default: the server's own address. */
    readonly hosts?: string;
  } = {},
) {
  const server = await new ScriptedServer(script).start();
  closing.push(() => server.stop());
  const clock = new ManualClock();
  const stop = new AbortController();
  const { matchers = [], prefix = "", hosts = new URL(server.url).host } = about;
  const question = { url: `${server.url}${prefix}`, matchers };
  const answer = firingAlerts(question, { sender: senderOf(hosts), clock }, stop.signal);
  // A test that awaits it later still gets the rejection.
  answer.catch(() => undefined);
  return { answer, server, clock, stop };
}

const answering =
  (status: number, body: string): Script =>
  (_, response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(body);
  };

/** Replies only to the requests that were recorded, with what Alertmanager answered to them. */
const asRecorded: Script = ({ url }, response) => {
  const found = recorded.find(({ path }) => path === url);
  response.writeHead(found?.status ?? 404, { "content-type": "application/json" });
  response.end(JSON.stringify(found?.body ?? `nothing recorded for ${url}`));
};

describe("the firing alerts, as recorded from a real Alertmanager", () => {
  it.each([
    { matchers: [], fire: ["ClusterDown", "NightJob", "QueueLong"] },
    { matchers: ['severity="critical"'], fire: ["ClusterDown", "NightJob"] },
    {
      matchers: ['severity=~"warning|critical"', 'team!="night"'],
      fire: ["ClusterDown", "QueueLong"],
    },
    { matchers: ['severity="none"'], fire: [] },
  ])("with the matchers $matchers are $fire", async ({ matchers, fire }) => {
    const { answer } = await ask(asRecorded, { matchers });
    expect(await answer).toEqual(fire);
  });

  it("are unknown if Alertmanager rejects a matcher", async () => {
    const { answer } = await ask(asRecorded, { matchers: ["severity"] });
    await expect(answer).rejects.toThrow(
      "Cannot ask Alertmanager for its alerts: found status 400",
    );
  });
});

describe("a request to Alertmanager", () => {
  it("keeps the path of the configured URL", async () => {
    const { answer, server } = await ask(answering(200, "[]"), { prefix: "/alertmanager/" });
    expect(await answer).toEqual([]);
    expect(server.seen[0]?.url).toMatch(/^\/alertmanager\/api\/v2\/alerts\?/);
  });

  it.each([
    {
      answers: "an error",
      status: 503,
      body: "starting",
      says: "found status 503",
    },
    { answers: "a page", status: 200, body: "<html>", says: "its response is not JSON" },
    { answers: "nothing", status: 200, body: "", says: "its response is not JSON" },
    {
      answers: "an object",
      status: 200,
      body: '{"status":"success"}',
      says: "its response is not a list",
    },
    { answers: "no content", status: 204, body: "", says: "its response is not JSON" },
  ])("that returns $answers is an error, not an empty list", async (odd) => {
    const { answer } = await ask(answering(odd.status, odd.body));
    await expect(answer).rejects.toThrow(`Cannot ask Alertmanager for its alerts: ${odd.says}`);
  });

  it("goes nowhere unless --action-hosts names the host, even to loopback", async () => {
    for (const hosts of ["", "alertmanager.monitoring", "127.0.0.1:1", "*.1"]) {
      const { answer, server } = await ask(answering(200, "[]"), { hosts });
      await expect(answer).rejects.toMatchObject({ code: "ACTION_HOST_FORBIDDEN" });
      expect(server.seen).toEqual([]);
    }
  });

  it("goes to no address of this machine or of a metadata service by an allowed name", async () => {
    const { server } = await ask(answering(200, "[]"));
    const url = `http://alerts.test:${new URL(server.url).port}`;
    const seenBefore = server.seen.length;
    const question = { url, matchers: [] };
    const options = { sender: senderOf("alerts.test"), clock: new ManualClock() };
    await expect(firingAlerts(question, options, new AbortController().signal)).rejects.toThrow(
      "the address 127.0.0.1 of alerts.test, which --action-hosts does not name",
    );
    expect(server.seen).toHaveLength(seenBefore);
  });

  it.each(["/latest/meta-data/?", "/secret#", "/secret?x=", "/a/../secret/%2e%2e?"])(
    "to an address with %s goes to Alertmanager's path all the same",
    async (prefix) => {
      const { answer, server } = await ask(answering(200, "[]"), { prefix });
      expect(await answer).toEqual([]);
      const { pathname, searchParams } = new URL(server.seen[0]?.url ?? "", server.url);
      expect(pathname).toMatch(/\/api\/v2\/alerts$/);
      expect([...searchParams.keys()]).toEqual(["active", "silenced", "inhibited"]);
    },
  );

  it("is not sent on by a redirect", async () => {
    const reached: string[] = [];
    const other = createServer((request, response) => {
      reached.push(request.url ?? "");
      response.end("[]");
    });
    await new Promise<void>((resolve) => {
      other.listen(0, "127.0.0.1", resolve);
    });
    closing.push(() => new Promise((resolve) => other.close(() => resolve())));
    const { port } = other.address() as AddressInfo;
    const { answer } = await ask(
      (_, response) => {
        response.writeHead(302, { location: `http://127.0.0.1:${port}/s3cret` });
        response.end();
      },
      { hosts: "127.0.0.1" },
    );
    await expect(answer).rejects.toThrow(
      "Cannot ask Alertmanager for its alerts: found status 302, a redirect, which is not followed; use its target",
    );
    expect(reached).toEqual([]);
  });

  it.each([
    [404, "db-password=s3cret"],
    [500, "s3cret"],
    [200, "s3cret"],
    [200, '{"error":"s3cret"}'],
  ])("of status %i with %s does not show the response", async (status, body) => {
    const { answer } = await ask(answering(status, body));
    const fault = await answer.catch((error: unknown) => error);
    expect(String(fault)).toMatch(/^LastcallError: Cannot ask Alertmanager/);
    expect(JSON.stringify([String(fault), fault, (fault as Error).cause])).not.toMatch(/s3cret/);
  });

  it("shows at most 100 characters of an alert's name, on one line", async () => {
    const body = JSON.stringify([{ labels: { alertname: `a\u001b[31m\n${"x".repeat(1000)}` } }]);
    const [name = ""] = await (await ask(answering(200, body))).answer;
    expect(name).toHaveLength(100);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    expect(name).not.toMatch(/[\u0000-\u001f]/);
  });

  it("reads at most 8 MiB of an endless response", async () => {
    const part = Buffer.alloc(256 * 1024, " ");
    let sent = 0;
    let isOver = false;
    const { answer } = await ask((_, response) => {
      response.on("close", () => {
        isOver = true;
      });
      const more = (error?: Error | null): void => {
        if (isOver || error || sent > 512) return;
        sent += 1;
        response.write(part, more);
      };
      response.writeHead(200);
      more();
    });
    await expect(answer).rejects.toThrow("its response is over 8 MiB");
    await waitUntil(async () => isOver, { what: "the connection is closed", timeoutMs: 5000 });
    // A little more was in flight by then, far less than the 128 MiB that would have been sent.
    expect(sent).toBeLessThan(128);
  });

  it("reads multi-byte characters correctly", async () => {
    const { answer } = await ask(answering(200, '[{"labels": {"alertname": "Überlast 高負荷"}}]'));
    expect(await answer).toEqual(["Überlast 高負荷"]);
  });

  it("counts an alert without a readable name", async () => {
    const { answer } = await ask(answering(200, '[null, {}, {"labels": {"alertname": "A"}}]'));
    expect(await answer).toEqual(["A", "unnamed"]);
  });

  it("times out after five seconds", async () => {
    const { answer, server, clock } = await ask(() => undefined);
    await waitUntil(async () => server.seen.length === 1, { what: "it is asked", timeoutMs: 5000 });
    await clock.advance(seconds(5));
    await expect(answer).rejects.toThrow(
      "Cannot ask Alertmanager for its alerts: no response within 5 s",
    );
  });

  it("ends with the controller", async () => {
    const { answer, server, stop } = await ask(() => undefined);
    await waitUntil(async () => server.seen.length === 1, { what: "it is asked", timeoutMs: 5000 });
    stop.abort(new Error("the end"));
    await expect(answer).rejects.toThrow("the end");
  });
});
