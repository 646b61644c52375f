import { describe, expect, it } from "vitest";
import type { LaunchTimeReading, LaunchTimes } from "../../src/contracts/cloud.ts";
import { LaunchTimeCache } from "../../src/controller/launch-time-cache.ts";
import type { NodeFacts } from "../../src/core/cluster/node.ts";
import { defaultPolicy } from "../../src/core/policy/policy.ts";
import { hours, type Instant, instant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { eventLoopTurn } from "../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../src/sim/time/virtual-clock.ts";

const startAt = instant(Date.UTC(2026, 10, 20));
const bornAt = plus(startAt, hours(-1));
const policies = [
  { ...defaultPolicy, name: "spot", lifetime: { ...defaultPolicy.lifetime, maxMs: hours(24) } },
];

function node(name: string, bootID = "boot-1"): NodeFacts {
  return {
    name,
    uid: `uid-${name}`,
    providerID: `gce://p/z/${name}`,
    bootID,
    labels: { "cloud.google.com/gke-preemptible": "true" },
    annotations: {},
    taints: [],
    unschedulable: false,
    ready: true,
    createdAt: plus(startAt, hours(-48)),
  };
}

/** A slow cloud, which a test may let fail. */
class SlowLaunchTimes implements LaunchTimes {
  readonly asked: string[] = [];
  takesMs = seconds(0.2);
  fault: LastcallError | undefined;
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  async launchTimesOf(
    providerIDs: readonly string[],
    signal: AbortSignal,
  ): Promise<LaunchTimeReading> {
    const names = providerIDs.map((providerID) => providerID.split("/").at(-1));
    this.asked.push(`${this.#clock.monotonic() / 1000} ${names.join(" ")}`);
    await this.#clock.sleep(this.takesMs, signal);
    if (this.fault !== undefined) return { bornAt: new Map(), faults: [this.fault] };
    const told = providerIDs.filter((one) => !one.endsWith("unknown"));
    return { bornAt: new Map(told.map((one) => [one, bornAt])), faults: [] };
  }
}

function stage() {
  const clock = new VirtualClock({ startAt, settle: eventLoopTurn });
  const launchTimes = new SlowLaunchTimes(clock);
  const said: string[] = [];
  const counted: string[] = [];
  const log = (event: string, fields: object = {}) =>
    said.push(`${event} ${JSON.stringify(fields)}`);
  const telemetry = {
    log: { debug: log, info: log, warn: log, error: log },
    metrics: {
      count: (_: string, labels: Readonly<Record<string, string>>) =>
        counted.push(labels.code ?? ""),
      set: () => {},
      observe: () => {},
    },
  };
  const stop = new AbortController();
  let news = 0;
  const onNews = () => {
    news += 1;
  };
  const book = new LaunchTimeCache({ launchTimes, clock, telemetry, onNews });
  /** The launch times that the plan gets, and the seconds it waited for them. */
  async function tell(...nodes: readonly NodeFacts[]) {
    const from = clock.monotonic();
    let answer: { launchTimes: readonly (Instant | undefined)[]; waited: number } | undefined;
    void book.learn({ nodes, policies }, stop.signal).then(() => {
      const known = book.withKnownLaunchTimes(nodes).map((one) => one.instanceBornAt);
      answer = { launchTimes: known, waited: (clock.monotonic() - from) / 1000 };
    });
    await clock.runUntilDone(() => answer !== undefined, plus(clock.now(), minutes(1)));
    return answer;
  }
  return { clock, launchTimes, said, counted, tell, news: () => news };
}

describe("launch times", () => {
  it("are requested together and once, and cost no time after that", async () => {
    const { launchTimes, tell } = stage();
    expect(await tell(node("n1"), node("n2"))).toEqual({
      launchTimes: [bornAt, bornAt],
      waited: 0.2,
    });
    expect(await tell(node("n1"), node("n2"))).toEqual({
      launchTimes: [bornAt, bornAt],
      waited: 0,
    });
    expect(launchTimes.asked).toEqual(["0 n1 n2"]);
  });

  it("are requested again after a reboot, for that machine alone", async () => {
    const { clock, launchTimes, tell } = stage();
    await tell(node("n1"), node("n2"));
    await clock.advance(minutes(1));
    await tell(node("n1", "boot-2"), node("n2"));
    expect(launchTimes.asked).toEqual(["0 n1 n2", "60.2 n1"]);
  });

  it("are requested at most every five seconds, however the machines appear", async () => {
    const { launchTimes, tell } = stage();
    await tell(node("n1"));
    expect(await tell(node("n1"), node("n2"))).toEqual({
      launchTimes: [bornAt, bornAt],
      waited: 5,
    });
    expect(launchTimes.asked).toEqual(["0 n1", "5 n2"]);
  });

  it("delay the plan for at most eight seconds, and wake it when they arrive", async () => {
    const { clock, launchTimes, tell, news } = stage();
    launchTimes.takesMs = seconds(20);
    expect(await tell(node("n1"))).toEqual({ launchTimes: [undefined], waited: 8 });
    await clock.advance(seconds(11));
    expect(news()).toBe(0);
    await clock.advance(seconds(1));
    expect(news()).toBe(1);
    expect(await tell(node("n1"))).toEqual({ launchTimes: [bornAt], waited: 0 });
  });

  it("that cannot be read are counted each time, logged once, and requested less and less often", async () => {
    const { clock, launchTimes, said, counted, tell } = stage();
    launchTimes.fault = new LastcallError("CLOUD_RIGHT_MISSING", "Cannot list: no right");
    expect(await tell(node("n1"))).toEqual({ launchTimes: [undefined], waited: 0.2 });
    for (let minute = 0; minute < 30; minute++) {
      expect((await tell(node("n1")))?.waited).toBe(0);
      await clock.advance(minutes(1));
    }
    const askedAt = launchTimes.asked.map((line) => Number.parseFloat(line));
    expect(counted).toEqual(Array(askedAt.length).fill("CLOUD_RIGHT_MISSING"));
    expect(askedAt.length).toBeGreaterThan(3);
    expect(askedAt.length).toBeLessThan(9);
    expect(said).toHaveLength(1);
    expect(said[0]).toContain("the age of the Node object is used instead");
    launchTimes.fault = undefined;
    await clock.advance(minutes(10));
    await tell(node("n1"));
    await clock.advance(seconds(1));
    expect(await tell(node("n1"))).toEqual({ launchTimes: [bornAt], waited: 0 });
  });

  it("that the cloud does not know are requested again after ten minutes", async () => {
    const { clock, launchTimes, tell } = stage();
    expect(await tell(node("unknown"))).toEqual({ launchTimes: [undefined], waited: 0.2 });
    await clock.advance(minutes(9));
    await tell(node("unknown"));
    await clock.advance(minutes(1));
    await tell(node("unknown"));
    expect(launchTimes.asked).toEqual(["0 unknown", "600.2 unknown"]);
  });

  it("are not requested for nodes that no policy plans", async () => {
    const { launchTimes, tell } = stage();
    await tell({ ...node("n1"), labels: {} }, { ...node("n2"), providerID: undefined });
    expect(launchTimes.asked).toEqual([]);
  });
});
