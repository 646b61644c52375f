import { describe, expect, it } from "vitest";
import { preflight } from "../../src/cli/commands/run.ts";
import type { KubeAnswer, KubeApi } from "../../src/contracts/kube-api.ts";
import { instant, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";

const unreachable = new LastcallError("API_UNREACHABLE", "Cannot get /version: connection refused");

/**
 * Lets a minute pass for a contact whose answers come from `answer`; gives its end and its length.
 */
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
  it("is made at once where it answers", async () => {
    const found = await contact(() => ({ status: 200, body: {} }));
    expect(found).toEqual({ end: "Answered", ms: 0, waits: [] });
  });

  it("waits for one that is being restarted, and says so at once and once", async () => {
    const found = await contact((atMs) => {
      if (atMs < 5000) throw unreachable;
      return { status: 200, body: {} };
    });
    const waits = [{ atMs: 0, error: unreachable, patienceMs: 20_000 }];
    expect(found).toEqual({ end: "Answered", ms: 5000, waits });
  });

  it("ends after twenty seconds with what was wrong", async () => {
    const found = await contact(() => {
      throw unreachable;
    });
    expect(found).toMatchObject({ end: unreachable, ms: 20_000 });
  });

  it("ends at once where nobody knows who asks", async () => {
    const { end, ms } = await contact(() => ({ status: 401, body: { message: "Unauthorized" } }));
    expect(end).toMatchObject({ code: "API_UNAUTHORIZED", exitCode: 1 });
    expect(ms).toBe(0);
  });
});
