import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Fault, FaultCall } from "../support/fault-proxy.ts";
import { FaultWorld } from "./fault-world.ts";

const budgetsAct = "the list of the budgets";

/** The kinds of requests to the API server that follow a notice. */
const acts: Readonly<Record<string, (call: FaultCall) => boolean>> = {
  "the cordon": ({ method, path }) => method === "PATCH" && /^\/api\/v1\/nodes\/[^/]+$/.test(path),
  "the list of the pods": ({ method, path }) =>
    method === "GET" && /^\/api\/v1\/pods\?.*fieldSelector/.test(path) && !isWatch(path),
  [budgetsAct]: ({ method, path }) =>
    method === "GET" && path.startsWith("/apis/policy/v1/poddisruptionbudgets") && !isWatch(path),
};

const everywhere: readonly Fault[] = [
  { kind: "Status", code: 429, retryAfterSeconds: 1 },
  { kind: "Status", code: 500 },
  { kind: "Reset" },
  { kind: "LostAnswer" },
];

const refusals = [400, 401, 403].map((code): Fault => ({ kind: "Status", code }));

const rows = Object.keys(acts).flatMap((act) =>
  [...everywhere, ...(act === "the cordon" ? refusals : [])].map((fault) => ({
    act,
    fault,
    name: fault.kind === "Status" ? String(fault.code) : fault.kind,
  })),
);

/** Drains that start within a second share one list of the budgets. */
const budgetsSharedMs = 1_000;

let world: FaultWorld;
let budgetsReadAtMs = 0;

beforeAll(async () => {
  // One more node per kind of request, for the request that is never answered.
  world = await FaultWorld.start(rows.length + Object.keys(acts).length);
  await world.startController("Http");
});

afterAll(() => world?.stop());

describe("a notice of 30 s while a real API server fails one request", () => {
  test.each(rows)("$act ($name): cordon within 3 s, first eviction within 5 s", async (row) => {
    const failed = await injectOnce(row.act, row.fault);
    const { cordonMs, firstEvictionMs } = await world.reactionOf(
      world.takeNode(),
      `${row.act}: ${row.name}`,
    );
    // Budgets are read in parallel with the evictions, which do not wait for them.
    await world.until("the fault was met", async () => failed() === 1);
    expect(cordonMs).toBeLessThan(3_000);
    expect(firstEvictionMs).toBeLessThan(5_000);
  });

  test.each(Object.keys(acts))("%s (no response): both within 5 s", async (act) => {
    // A controller that has just hit such a timeout waits longer for the next response.
    await world.stopController();
    await world.startController("Http");
    const failed = await injectOnce(act, { kind: "Hole" });
    const { cordonMs, firstEvictionMs } = await world.reactionOf(
      world.takeNode(),
      `${act}: no answer ever`,
    );
    // Budgets are read in parallel with the evictions, which do not wait for them.
    await world.until("the fault was met", async () => failed() === 1);
    expect(cordonMs).toBeLessThan(5_000);
    expect(firstEvictionMs).toBeLessThan(5_000);
  });
});

/** Fails the next such request; the returned function counts the failed ones. */
async function injectOnce(act: string, fault: Fault): Promise<() => number> {
  const isIt = acts[act] as (call: FaultCall) => boolean;
  if (act === budgetsAct) {
    await world.until("the next drain reads the budgets itself", async () => {
      return Date.now() - budgetsReadAtMs > budgetsSharedMs;
    });
  }
  let failed = 0;
  world.injectFaults((call) => {
    if (acts[budgetsAct]?.(call)) budgetsReadAtMs = Date.now();
    if (failed > 0 || !isIt(call)) return undefined;
    failed += 1;
    return fault;
  });
  return () => failed;
}

function isWatch(path: string): boolean {
  return /[?&]watch=1(&|$)/.test(path);
}
