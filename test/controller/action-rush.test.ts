import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../src/contracts/kube-api.ts";
import { type Millis, millis, minutes, seconds } from "../../src/core/time/time.ts";
import { silence, slack, useActionStage } from "../support/action-stage.ts";

const stage = useActionStage();

/** Delays requests of the controller before they are sent. */
function delay(waitOf: (request: KubeRequest) => Promise<void>): void {
  const { api } = stage.world;
  const send = api.send.bind(api);
  api.send = async (request) => {
    await waitOf(request);
    return send(request);
  };
}

const isCordon = ({ method, path }: KubeRequest) =>
  method === "PATCH" && /^\/api\/v1\/nodes\/[^/]+$/.test(path);
const isStatus = ({ method, path }: KubeRequest) =>
  method === "PATCH" && /\/departures\/[^/]+\/status$/.test(path);

/** When each call of an action started, in milliseconds from now. */
function beginnings(): number[] {
  const { clock } = stage.world;
  const since = clock.now();
  const begun: number[] = [];
  stage.tell.onCall = (call) => {
    if (call === "prepare") begun.push(clock.now() - since);
  };
  return begun;
}

describe("the actions of simultaneous notices", () => {
  const tell = [{ name: "tell", at: "AtNotice", ...slack }];

  async function notice(nodes: readonly string[], cordonMs: Readonly<Record<string, Millis>>) {
    stage.start(tell);
    await stage.world.pass(seconds(5));
    delay(async (request) => {
      const node = request.path.split("/").at(-1) ?? "";
      if (isCordon(request)) await stage.world.clock.sleep(cordonMs[node] ?? millis(0));
    });
    const begun = beginnings();
    for (const node of nodes) stage.world.notice(node, seconds(120));
    await stage.world.pass(seconds(3));
    return begun;
  }

  it("start when the last cordon is answered", async () => {
    const begun = await notice(["n1", "n2"], { n1: millis(40), n2: millis(200) });
    expect(begun).toHaveLength(2);
    for (const ms of begun) {
      expect(ms).toBeGreaterThanOrEqual(200);
      expect(ms).toBeLessThan(210);
    }
  });

  it("start after 300 ms even if no cordon is answered", async () => {
    const begun = await notice(["n1", "n2"], { n1: seconds(2), n2: seconds(2) });
    expect(begun).toHaveLength(2);
    for (const ms of begun) {
      expect(ms).toBeGreaterThanOrEqual(300);
      expect(ms).toBeLessThan(310);
    }
  });

  it("start at once at a single notice, however long its cordon takes", async () => {
    const begun = await notice(["n1"], { n1: millis(200) });
    expect(begun).toHaveLength(1);
    expect(begun[0]).toBeLessThan(50);
  });
});

describe("while status writes wait behind evictions", () => {
  const targets = { name: "targets", at: "AtNotice", deregisterTargets: {} };
  const mute = { name: "mute", at: "AtNotice", ...silence };

  /** Status writes that are not urgent wait for ten seconds. */
  function rush(): number[] {
    const { clock } = stage.world;
    const since = clock.now();
    const sent: number[] = [];
    delay(async (request) => {
      // Before the first status comes the finalizer.
      const isFinalizer = JSON.stringify(request.body ?? "").includes("finalizers");
      if (!isStatus(request) && !isFinalizer) return;
      const over = new AbortController();
      const stop = () => over.abort();
      if (request.hurry?.aborted === true) stop();
      request.hurry?.addEventListener("abort", stop, { once: true });
      await clock.sleep(seconds(10), over.signal).catch(() => undefined);
      sent.push(clock.now() - since);
    });
    return sent;
  }

  it("deregisterTargets runs at once, and other actions wait for their records", async () => {
    stage.start([targets, mute]);
    await stage.world.pass(seconds(5));
    const sent = rush();
    const applied = new Map<string, number>();
    const since = stage.world.clock.now();
    stage.mute.onCall = (call, { name }) => {
      if (call === "apply") applied.set(name, stage.world.clock.now() - since);
      const lookMs = millis(name === "mute" ? 100 : 0);
      stage.mute.prepareLatency = (signal) => stage.world.clock.sleep(lookMs, signal);
    };
    stage.world.notice("n1", minutes(2));
    // Each of its records, and the finalizer, waits for ten seconds.
    await stage.world.pass(seconds(45));
    expect(applied.get("targets")).toBeLessThan(50);
    expect(applied.get("mute")).toBeGreaterThan(5000);
    expect(sent[0]).toBeLessThan(50);
    expect(stage.states).toEqual({ targets: "Done", mute: "Done" });
  });

  it("deregisterTargets also hurries a status write that waits already", async () => {
    stage.start([targets]);
    await stage.world.pass(seconds(5));
    rush();
    stage.mute.prepareLatency = (signal) => stage.world.clock.sleep(seconds(1), signal);
    const since = stage.world.clock.now();
    let appliedMs = Number.POSITIVE_INFINITY;
    stage.mute.onCall = (call) => {
      if (call === "apply") appliedMs = stage.world.clock.now() - since;
    };
    stage.world.notice("n1", minutes(2));
    await stage.world.pass(seconds(30));
    expect(appliedMs).toBeGreaterThanOrEqual(1000);
    expect(appliedMs).toBeLessThan(1050);
  });

  it("a waiting status write includes what happens until it is sent", async () => {
    stage.start([mute, { name: "tell", at: "AtNotice", ...slack }]);
    await stage.world.pass(seconds(5));
    rush();
    stage.world.notice("n1", minutes(2));
    await stage.world.pass(millis(10_200));
    expect(stage.records).toMatchObject([
      { name: "mute", state: "Running", undo: { before: "nothing" } },
      { name: "tell", state: "Done" },
    ]);
  });
});

it("a completed action needs at most two status writes of its own", async () => {
  const written: Record<string, number> = {};
  for (const [name, actions] of [
    ["without", []],
    ["with", [{ name: "mute", at: "AtNotice", ...silence }]],
  ] as const) {
    stage.renew();
    stage.start(actions);
    await stage.giveNotice();
    await stage.world.pass(seconds(10));
    written[name] = stage.world.writes.filter((one) => /departures.*status$/.test(one)).length;
    await stage.stop();
  }
  expect(stage.states).toEqual({ mute: "Done" });
  // Its record before the action changes anything, and its end.
  expect(written.with).toBeLessThanOrEqual((written.without ?? 0) + 2);
});
