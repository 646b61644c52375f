import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { firingAlerts } from "../../src/actions/alertmanager.ts";
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

async function ask(
  script: Script,
  about: { readonly matchers?: readonly string[]; readonly prefix?: string } = {},
) {
  const server = await new ScriptedServer(script).start();
  closing.push(() => server.stop());
  const clock = new ManualClock();
  const stop = new AbortController();
  const { matchers = [], prefix = "" } = about;
  const question = { url: `${server.url}${prefix}`, matchers };
  const answer = firingAlerts(question, { fetch, clock }, stop.signal);
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

  it("are unknown if Alertmanager rejects a matcher, and the error says why", async () => {
    const { answer } = await ask(asRecorded, { matchers: ["severity"] });
    await expect(answer).rejects.toThrow(
      'Cannot ask Alertmanager: it responded with 400 ("bad matcher format: severity"), expected a list of alerts',
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
      says: "it responded with 503 (starting)",
    },
    { answers: "a page", status: 200, body: "<html>", says: "Unexpected token" },
    { answers: "nothing", status: 200, body: "", says: "Unexpected end of JSON input" },
    { answers: "an object", status: 200, body: '{"status":"success"}', says: "not a list" },
  ])("that returns $answers is an error, not an empty list", async (odd) => {
    const { answer } = await ask(answering(odd.status, odd.body));
    await expect(answer).rejects.toMatchObject({
      code: "API_UNREACHABLE",
      message: expect.stringContaining(odd.says),
    });
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
    await expect(answer).rejects.toThrow("Cannot ask Alertmanager: no response within 5 s");
  });

  it("ends with the controller", async () => {
    const { answer, server, stop } = await ask(() => undefined);
    await waitUntil(async () => server.seen.length === 1, { what: "it is asked", timeoutMs: 5000 });
    stop.abort(new Error("the end"));
    await expect(answer).rejects.toThrow("the end");
  });
});
