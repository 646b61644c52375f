import { describe, expect, it } from "vitest";
import { preflight } from "../../src/cli/commands/run.ts";
import type { KubeAnswer, KubeApi } from "../../src/contracts/kube-api.ts";
import { instant, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";

const unreachable = new LastcallError("API_UNREACHABLE", "Cannot get /version: connection refused");

/** Runs the preflight against `answer` for a minute; returns its outcome and its duration. */
async function contact(
  answer: (atMs: number) => KubeAnswer,
): Promise<{ end: unknown; ms: number; waits: readonly unknown[] }> {
  const clock = new VirtualClock({ startAt: instant(0), settle: eventLoopTurn });
  const api: KubeApi = {
    send: async () => answer(clock.monotonic()),
    watch: () => {
      throw new Error("nothing is watched");
    },
  };
  let ms = 0;
  const waits: unknown[] = [];
  const onWait = (error: LastcallError, patienceMs: number) =>
    waits.push({ atMs: clock.monotonic(), error, patienceMs });
  const end = preflight(api, { clock, signal: new AbortController().signal, onWait })
    .then(
      () => "Answered",
      (error: unknown) => error,
    )
    .finally(() => {
      ms = clock.monotonic();
    });
  await clock.runUntil(instant(seconds(60)));
  return { end: await end, ms, waits };
}

describe("the first contact with the API server", () => {
  it("succeeds at once if the server responds", async () => {
    const found = await contact(() => ({ status: 200, body: {} }));
    expect(found).toEqual({ end: "Answered", ms: 0, waits: [] });
  });

  it("waits for a server that restarts, and reports that once, at the start", async () => {
    const found = await contact((atMs) => {
      if (atMs < 5000) throw unreachable;
      return { status: 200, body: {} };
    });
    const waits = [{ atMs: 0, error: unreachable, patienceMs: 20_000 }];
    expect(found).toEqual({ end: "Answered", ms: 5000, waits });
  });

  it("fails after twenty seconds with the cause", async () => {
    const found = await contact(() => {
      throw unreachable;
    });
    expect(found).toMatchObject({ end: unreachable, ms: 20_000 });
  });

  it("fails at once if the credentials are rejected", async () => {
    const { end, ms } = await contact(() => ({ status: 401, body: { message: "Unauthorized" } }));
    expect(end).toMatchObject({ code: "API_UNAUTHORIZED", exitCode: 1 });
    expect(ms).toBe(0);
  });
});
