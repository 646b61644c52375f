import { createServer, type RequestListener, type Server } from "node:http";
import { afterEach, expect, it } from "vitest";
import { PrometheusOutcomes } from "../../src/cli/board/start-board.ts";
import { seconds } from "../../src/core/time/time.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";

let server: Server;
let requests: string[];

async function serve(answer: RequestListener): Promise<string> {
  requests = [];
  server = createServer((request, response) => {
    requests.push(request.url ?? "");
    answer(request, response);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const bound = server.address();
  return `http://127.0.0.1:${typeof bound === "object" ? bound?.port : ""}`;
}
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const outcomesOf = (url: string) =>
  new PrometheusOutcomes({ url, fetch: globalThis.fetch, clock: realClock });

const empty = JSON.stringify({ status: "success", data: { resultType: "matrix", result: [] } });

it("PrometheusOutcomes keeps its URL's path, and queries once for concurrent pages", async () => {
  const url = await serve((_, response) => response.end(empty));
  const outcomes = outcomesOf(`${url}/prometheus/`);
  const nothing = { days: [], notices: { toCordon: null, timeLeft: null } };
  expect(await Promise.all([outcomes.ask(), outcomes.ask()])).toEqual([nothing, nothing]);
  expect(new Set(requests).size).toBe(10);
  expect(requests).toHaveLength(10);
  for (const path of requests) expect(path).toMatch(/^\/prometheus\/api\/v1\/query_range\?query=/);
});

it.each<readonly [string, RequestListener, RegExp]>([
  ["an HTML page", (_, response) => response.end("<html>"), /its response is not from Prometheus/],
  [
    "a redirect to a login",
    (_, response) => response.writeHead(302, { location: "/login" }).end(),
    /it responded with 302/,
  ],
  [
    "an error of Prometheus",
    (_, response) =>
      response.writeHead(400).end(JSON.stringify({ status: "error", error: "parse error" })),
    /it responded with 400 \(parse error\)/,
  ],
  [
    "endless",
    (_, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
        response.once("drain", more);
      };
      more();
    },
    /its response is over 8 MiB/,
  ],
])("PrometheusOutcomes names the problem if the response is %s", async (_, answer, why) => {
  const url = await serve(answer);
  const asked = outcomesOf(url).ask();
  await expect(asked).rejects.toThrow(why);
  await expect(asked).rejects.toThrow(`Cannot ask Prometheus at ${url}: `);
});

it("PrometheusOutcomes times out after ten seconds, with no password in its error", async () => {
  const clock = new VirtualClock({ startAt: realClock.now(), settle: () => Promise.resolve() });
  const logins: (string | undefined)[] = [];
  const url = await serve(({ headers }) => logins.push(headers.authorization));
  const fetch = globalThis.fetch;
  const outcomes = new PrometheusOutcomes({ url: url.replace("//", "//eve:a%20b@"), fetch, clock });
  const asked = outcomes.ask();
  const refused = expect(asked).rejects.toThrow(
    `Cannot ask Prometheus at ${url}: no response within 10 s`,
  );
  await expect.poll(() => logins.length).toBe(10);
  expect(logins[0]).toBe(`Basic ${btoa("eve:a b")}`);
  await clock.advance(seconds(10));
  await refused;
});
