import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManagedFeed, TaggedMachines } from "../../../src/cloud/aws/instance-feed.ts";
import type { FeedListener, NoticeFeed } from "../../../src/contracts/cloud.ts";
import type { InstanceNotice, LifecycleHook } from "../../../src/core/notice/instance-notice.ts";
import {
  instant,
  type Millis,
  millis,
  minutes,
  plus,
  seconds,
} from "../../../src/core/time/time.ts";
import { LastcallError } from "../../../src/errors.ts";
import { eventLoopTurn } from "../../../src/runtime/real-clock.ts";
import { VirtualClock } from "../../../src/sim/time/virtual-clock.ts";
import { FakeEc2 } from "../../support/fake-ec2.ts";
import { QueueListener } from "../../support/queue-listener.ts";

const dawn = instant(Date.UTC(2026, 10, 20, 12));
const tagged = "i-00000000000000001";
const plain = "i-00000000000000002";
const young = "i-00000000000000003";
const foreign = "i-00000000000000009";

function word(machine: string): InstanceNotice {
  const notice = { cause: "SpotInterruption", noticedAt: dawn, source: "t", eventId: "e" } as const;
  return { machine, notice };
}

function hook(machine: string): LifecycleHook {
  return { transition: "Launching", machine, group: "spot-asg", name: "join", at: dawn };
}

describe("a feed that is limited to tagged instances", () => {
  let clock: VirtualClock;
  let ec2: FakeEc2;
  let cluster: QueueListener;
  let ending: AbortController;
  let running: Promise<void>;
  let inner: FeedListener;

  beforeEach(async () => {
    clock = new VirtualClock({ startAt: dawn, settle: eventLoopTurn });
    ec2 = new FakeEc2();
    ec2.tags.set(tagged, { team: "a" });
    ec2.tags.set(plain, { other: "a" });
    cluster = new QueueListener({ [tagged]: "Taken", [plain]: "Taken", [young]: "Taken" });
    ending = new AbortController();
    running = Promise.resolve();
  });
  afterEach(async () => {
    ending.abort();
    await pass(seconds(5));
    await running;
  });

  async function start(): Promise<void> {
    const feed: NoticeFeed = {
      run: async (listener, signal) => {
        inner = listener;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    };
    const tag = { key: "team", value: "a" };
    const machines = new TaggedMachines({ ec2, tag, clock, rng: () => 0.5 });
    const isNode = (machine: string) => machine !== foreign;
    running = new ManagedFeed({ feeds: [feed], machines, isNode }).run(cluster, ending.signal);
    await pass(seconds(0));
  }

  function pass(span: Millis): Promise<void> {
    return clock.runUntil(plus(clock.now(), span));
  }

  it.each([
    ["passes on", "an instance with the tag", tagged, "Taken"],
    ["skips", "an instance without the tag", plain, "NotOwned"],
    ["passes on", "an instance that is not a node, as without a tag", foreign, "NoNode"],
  ])("%s a notice for %s", async (_, __, machine, delivery) => {
    await start();
    expect(await inner.onNotice(word(machine))).toBe(delivery);
    expect(await inner.onHook(hook(machine))).toBe(machine === plain ? "LeftAlone" : "Ended");
    expect(cluster.troubles).toEqual([]);
  });

  it("sends no request for a notice of a known instance, or of one that is no node", async () => {
    await start();
    const before = ec2.calls.length;
    for (let count = 0; count < 300; count += 1) {
      await inner.onNotice(word(tagged));
      await inner.onNotice(word(foreign));
    }
    expect(ec2.calls).toHaveLength(before);
  });

  it("looks up an unknown instance on its own, once for any number of notices", async () => {
    await start();
    ec2.tags.set(young, { team: "a" });
    const deliveries = await Promise.all(
      Array.from({ length: 50 }, () => inner.onNotice(word(young))),
    );
    expect(new Set(deliveries)).toEqual(new Set(["Taken"]));
    expect(await inner.onNotice(word(young))).toBe("Taken");
    expect(ec2.calls).toEqual(["tagged", `tagged ${young}`]);
  });

  it("looks up again what had no tag, which it may have got since", async () => {
    await start();
    const deliveries = await Promise.all(
      [word(plain), word(plain)].map((one) => inner.onNotice(one)),
    );
    expect(deliveries).toEqual(["NotOwned", "NotOwned"]);
    expect(ec2.calls).toEqual(["tagged", `tagged ${plain}`]);
    ec2.tags.set(plain, { team: "a" });
    expect(await inner.onNotice(word(plain))).toBe("Taken");
  });

  it("looks up many unknown instances with few requests, one after the other", async () => {
    await start();
    const many = Array.from({ length: 300 }, (_, place) => `i-1${String(place).padStart(16, "0")}`);
    for (const machine of many.slice(0, 150)) ec2.tags.set(machine, { team: "a" });
    const deliveries = await Promise.all(many.map((machine) => inner.onNotice(word(machine))));
    expect(deliveries.slice(0, 150)).toEqual(Array(150).fill("NoNode"));
    expect(deliveries.slice(150)).toEqual(Array(150).fill("NotOwned"));
    expect(ec2.calls.map((call) => call.split(",").length)).toEqual([1, 190, 110]);
  });

  it("looks up at once the instances that came during a request", async () => {
    await start();
    ec2.silent = true;
    const first = inner.onNotice(word(plain));
    await pass(millis(500));
    ec2.silent = false;
    const others = [young, tagged, "i-00000000000000004"].map((one) => inner.onNotice(word(one)));
    await pass(millis(400));
    expect(ec2.calls).toEqual(["tagged", `tagged ${plain}`]);
    await pass(millis(100));
    expect(await first).toBe("Taken");
    expect(await Promise.all(others)).toEqual(["NotOwned", "Taken", "NotOwned"]);
    expect(ec2.calls).toHaveLength(3);
    expect(ec2.calls.at(-1)).toBe(`tagged ${young},i-00000000000000004`);
  });

  it("makes no notice wait longer than a second while EC2 does not respond", async () => {
    await start();
    ec2.silent = true;
    const heard: number[] = [];
    const hear = async (machine: string) => {
      const fromAt = clock.now();
      await inner.onNotice(word(machine));
      heard.push(clock.now() - fromAt);
    };
    for (let place = 0; place < 8; place += 1) {
      void hear(`i-2${String(place).padStart(16, "0")}`);
      await pass(millis(300));
    }
    await pass(seconds(1));
    expect(heard).toEqual(Array(8).fill(1000));
    expect(cluster.codes()).toEqual(["CLOUD_UNREACHABLE"]);
  });

  it("learns within minutes that a tag was added or removed", async () => {
    await start();
    expect(await inner.onNotice(word(plain))).toBe("NotOwned");
    ec2.tags.set(plain, { team: "a" });
    ec2.tags.set(tagged, {});
    await pass(minutes(6));
    expect(await inner.onNotice(word(plain))).toBe("Taken");
    expect(await inner.onNotice(word(tagged))).toBe("NotOwned");
  });

  it("passes on a notice if EC2 denies the lookup, and reports that", async () => {
    ec2.fault = new LastcallError("CLOUD_RIGHT_MISSING", "no right");
    await start();
    expect(await inner.onNotice(word(plain))).toBe("Taken");
    expect(cluster.codes()).toEqual(["CLOUD_RIGHT_MISSING"]);
    ec2.fault = undefined;
    expect(await inner.onNotice(word(plain))).toBe("NotOwned");
  });

  it("passes on a notice after a second if EC2 does not respond at all", async () => {
    ec2.silent = true;
    await start();
    const heard = inner.onNotice(word(plain));
    await pass(seconds(1));
    expect(await heard).toBe("Taken");
    expect(cluster.codes()).toEqual(["CLOUD_UNREACHABLE"]);
    expect(clock.now()).toBe(plus(dawn, seconds(1)));
  });

  it("uses what it knows if EC2 stops responding", async () => {
    await start();
    ec2.silent = true;
    await pass(minutes(20));
    const delivery = inner.onNotice(word(tagged));
    await pass(seconds(0));
    expect(await delivery).toBe("Taken");
  });
});
