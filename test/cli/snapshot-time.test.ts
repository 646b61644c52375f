import { describe, expect, it } from "vitest";
import type { CommandIo } from "../../src/cli/command-line/command.ts";
import { readFleet } from "../../src/cli/input/fleet-snapshot.ts";
import type { KubeAnswer, KubeApi } from "../../src/contracts/kube-api.ts";
import { formatInstant, hours, type Millis, plus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { ManualClock } from "../support/manual-clock.ts";

const clock = new ManualClock();
const aheadMs = hours(3);
const serverTime = () => plus(clock.now(), aheadMs);
const stated = () => ({ serverAt: serverTime() });
const late = async (more: () => Partial<KubeAnswer>): Promise<KubeAnswer> => {
  await clock.sleep(seconds(8));
  return { status: 200, body: { gitVersion: "v1.36.0" }, ...more() };
};

/** Reads an empty fleet, and says what time it was by the cluster, and the warnings. */
async function readWith(
  version: () => Promise<KubeAnswer>,
  ofList: () => Partial<KubeAnswer>,
): Promise<{ readonly offMs: Millis; readonly warnings: string }> {
  let warnings = "";
  const list = async (): Promise<KubeAnswer> => {
    return { status: 200, body: { kind: "List", items: [] }, ...ofList() };
  };
  const asked = Promise.withResolvers<void>();
  const ask = () => {
    const answer = version();
    asked.resolve();
    return answer;
  };
  const api = {
    send: ({ path }: { readonly path: string }) => (path === "/version" ? ask() : list()),
  } as unknown as KubeApi;
  const io = {
    ...{ clock, signal: new AbortController().signal },
    err: (text: string) => {
      warnings += text;
    },
  } as unknown as CommandIo;
  const reading = readFleet({ from: [], filename: [] }, { api }, io);
  await asked.promise;
  await clock.advance(seconds(8));
  const { readAt } = await reading;
  return { offMs: (readAt - clock.now()) as Millis, warnings };
}

const nearby = (offMs: Millis) => Math.abs(offMs - aheadMs) <= seconds(10);
const unreachable = () =>
  Promise.reject(new LastcallError("API_UNREACHABLE", "Cannot GET /version: timed out"));

describe("The time of a fleet that was read", () => {
  it.each<[string, () => Promise<KubeAnswer>, () => Partial<KubeAnswer>]>([
    ["states its version late", () => late(stated), () => ({})],
    ["does not state its version", unreachable, stated],
    [
      "is a demo that states its version late",
      () => late(() => ({ body: { modelClock: { at: formatInstant(serverTime()), rate: 1 } } })),
      () => ({
        serverAt: clock.now(),
      }),
    ],
  ])("is the server's if that %s", async (_, version, ofList) => {
    const { offMs, warnings } = await readWith(version, ofList);
    expect(offMs).toSatisfy(nearby);
    expect(warnings).toBe("");
  });

  it("is this computer's, with a warning, if the server states none", async () => {
    const { offMs, warnings } = await readWith(unreachable, () => ({}));
    expect(Math.abs(offMs)).toBeLessThanOrEqual(seconds(10));
    expect(warnings).toMatch(/^lastcall: The API server does not say what time it is, .*\n$/);
  });
});
