import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SqsClient, SqsFeed } from "../../../../src/cloud/aws/queue/sqs-client.ts";
import { actFromAt } from "../../../../src/core/notice/notice.ts";
import { hours, minutes, plus, seconds } from "../../../../src/core/time/time.ts";
import { LastcallError } from "../../../../src/errors.ts";
import { realClock } from "../../../../src/runtime/real-clock.ts";
import { queueFault } from "../../../support/fake-queue.ts";
import {
  healthEvent,
  rebalance,
  spotWarning,
  testNotification,
} from "../../../support/queue-body.ts";
import { QueueListener } from "../../../support/queue-listener.ts";
import { dawn, ours, QueueStage, theirs } from "../../../support/queue-stage.ts";
import { ScriptedServer } from "../../../support/scripted-server.ts";
import { waitUntil } from "../../../support/wait-until.ts";

describe("the feed of a queue", () => {
  let stage: QueueStage;
  let clock: QueueStage["clock"];
  let queue: QueueStage["queue"];
  let cluster: QueueStage["cluster"];

  beforeEach(() => {
    stage = new QueueStage();
    ({ clock, queue, cluster } = stage);
  });
  afterEach(() => stage.end());

  it("reports a notice and removes its message", async () => {
    queue.send(spotWarning(stage.about(ours)));
    stage.start();
    await stage.pass(seconds(1));
    expect(cluster.words).toMatchObject([
      {
        machine: ours,
        notice: { cause: "SpotInterruption", deadlineAt: plus(dawn, seconds(120)) },
      },
    ]);
    expect(queue.size).toBe(0);
    expect(cluster.troubles).toEqual([]);
  });

  it("receives at once what arrives while it waits", async () => {
    stage.start();
    await stage.pass(seconds(7));
    queue.send(spotWarning(stage.about(ours)));
    await stage.pass(seconds(0));
    expect(cluster.words).toHaveLength(1);
  });

  it("handles many messages at once, none after another's end", async () => {
    for (let count = 0; count < 300; count += 1)
      queue.send(spotWarning(stage.about(ours, `e-${count}`)));
    cluster.fault = queueFault();
    stage.start();
    await stage.pass(seconds(3));
    expect(queue.shown).toBe(0);
    cluster.fault = undefined;
    await stage.pass(seconds(2));
    expect(cluster.words).toHaveLength(300);
    expect(queue.size).toBe(0);
  });

  it("removes reported messages ten at a time, and the remaining ones soon", async () => {
    for (let count = 0; count < 43; count += 1)
      queue.send(spotWarning(stage.about(ours, `e-${count}`)));
    stage.start();
    await stage.pass(seconds(1));
    const sizes = queue.calls
      .filter((call) => call.startsWith("remove "))
      .map((call) => call.split(",").length);
    expect(sizes).toEqual([10, 10, 10, 10, 3]);
  });

  it("removes reported messages when it ends, and returns none to the queue", async () => {
    queue.send(spotWarning(stage.about(ours)));
    stage.start();
    await stage.pass(seconds(0));
    expect([cluster.words.length, queue.size]).toEqual([1, 1]);
    stage.stop();
    await stage.pass(seconds(0));
    expect(queue.size).toBe(0);
    expect(queue.calls.filter((call) => call.startsWith("hide "))).toEqual([]);
  });

  it("keeps a message hidden while the cluster cannot be written", async () => {
    cluster.fault = new LastcallError("API_UNREACHABLE", "the API server is away");
    queue.send(spotWarning(stage.about(ours)));
    stage.start();
    for (let second = 0; second < 60; second += 1) {
      await stage.pass(seconds(1));
      expect([queue.size, queue.shown]).toEqual([1, 0]);
    }
    // It was never visible in between: the feed's own receivers would have taken it again at once.
    expect(queue.given).toBe(1);
    expect(cluster.codes()).toEqual(["API_UNREACHABLE"]);
    cluster.fault = undefined;
    await stage.pass(seconds(1));
    expect(cluster.words).toHaveLength(1);
    expect(queue.size).toBe(0);
  });

  it("returns unreported messages to the queue when it ends", async () => {
    cluster.fault = new LastcallError("LEASE_LOST", "another leads");
    queue.send(spotWarning(stage.about(ours)));
    stage.start();
    await stage.pass(seconds(1));
    expect(queue.shown).toBe(0);
    await stage.end();
    expect([queue.size, queue.shown]).toEqual([1, 1]);
  });

  it("retries a queue that is unavailable, and recovers within half a minute", async () => {
    queue.fault = queueFault();
    stage.start();
    await stage.pass(hours(1));
    const asked = queue.calls.length;
    // Two receivers, each every 15 to 30 s.
    expect(asked).toBeGreaterThan(240);
    expect(asked).toBeLessThan(520);
    expect(cluster.codes()).toEqual(["CLOUD_UNREACHABLE"]);
    queue.fault = undefined;
    queue.send(spotWarning(stage.about(ours)));
    await stage.pass(seconds(30));
    expect(cluster.words).toHaveLength(1);
  });

  it("lets another cluster on the queue receive its message within two seconds", async () => {
    queue.send(spotWarning(stage.about(theirs)));
    stage.start();
    const other = new QueueListener({ [ours]: "Taken" });
    other.deliveries = { [theirs]: "Taken" };
    const ending = new AbortController();
    const others = stage.feed({ seed: 2 }).run(other, ending.signal);
    await stage.pass(seconds(2));
    expect(other.words).toHaveLength(1);
    await stage.pass(seconds(1));
    expect(queue.size).toBe(0);
    ending.abort();
    await stage.pass(seconds(5));
    await others;
  });

  it("receives a message that no cluster takes less and less often", async () => {
    queue.send(spotWarning(stage.about(theirs)));
    stage.start();
    await stage.pass(seconds(600));
    expect(queue.size).toBe(1);
    expect(cluster.words.length).toBeGreaterThan(15);
    expect(cluster.words.length).toBeLessThan(30);
    expect(cluster.codes()).toEqual(["INSTANCE_UNKNOWN"]);
  });

  it.each([
    [
      "a message for another cluster's machine",
      spotWarning({ instanceId: theirs, time: "2026-11-20T12:00:00Z" }),
      "INSTANCE_UNKNOWN",
    ],
    ["garbage", "<html></html>", "NOTICE_UNREADABLE"],
    ["a megabyte", "x".repeat(1_048_577), "NOTICE_UNREADABLE"],
    [
      "an event of another service",
      { source: "aws.s3", "detail-type": "Object Created", detail: {} },
      "NOTICE_UNREADABLE",
    ],
  ])("deletes %s only if the queue is its own", async (_, body, code) => {
    queue.send(body);
    stage.start("Delete");
    await stage.pass(seconds(1));
    expect(queue.size).toBe(0);
    expect(cluster.codes()).toEqual([code]);
    await stage.end();
    queue.send(body);
    stage.start("Leave");
    await stage.pass(seconds(30));
    expect(queue.size).toBe(1);
  });

  it("removes test notifications, stale notices and notices of unmanaged machines", async () => {
    cluster.deliveries = { [ours]: "NotOwned", [theirs]: "Stale" };
    queue.send(testNotification());
    queue.send(spotWarning(stage.about(ours)));
    queue.send(spotWarning(stage.about(theirs)));
    stage.start();
    await stage.pass(seconds(1));
    expect(queue.size).toBe(0);
    expect(cluster.codes()).toEqual(["NOTICE_STALE"]);
  });

  it("reports each machine of a Health event, but keeps the message for others", async () => {
    const entities = [ours, theirs].map((entityValue) => ({ entityValue }));
    queue.send(
      healthEvent(stage.about(""), { entities, startTime: "Fri, 20 Nov 2026 12:10:00 GMT" }),
    );
    stage.start();
    await stage.pass(seconds(1));
    expect(new Set(cluster.words.map(({ machine }) => machine))).toEqual(new Set([ours, theirs]));
    expect(queue.size).toBe(1);
  });

  it("leaves maintenance that is a day ahead in the queue until it is near", async () => {
    const startTime = "Sat, 21 Nov 2026 14:00:00 GMT";
    const nearAt = plus(dawn, hours(24));
    queue.send(healthEvent(stage.about(""), { entities: [{ entityValue: ours }], startTime }));
    cluster.onNotice = async (word) => {
      cluster.words.push(word);
      return clock.now() < nearAt ? "TooEarly" : "Taken";
    };
    stage.start();
    await stage.pass(hours(23));
    // It is hidden for at most eleven hours, of the twelve that SQS allows.
    expect(cluster.words).toHaveLength(3);
    expect(queue.size).toBe(1);
    await stage.pass(hours(1));
    await stage.pass(seconds(30));
    expect(cluster.words).toHaveLength(4);
    expect(queue.size).toBe(0);
    expect(cluster.troubles).toEqual([]);
  });

  it("reports withdrawn maintenance before its notice, whichever arrives first", async () => {
    const startTime = "Sat, 21 Nov 2026 14:00:00 GMT";
    const health = { entities: [{ entityValue: ours }], startTime };
    queue.send(healthEvent(stage.about(""), health));
    queue.send(healthEvent(stage.about(""), { ...health, more: { statusCode: "closed" } }));
    const taken: unknown[] = [];
    cluster.onNotice = async ({ notice }) => {
      if (clock.now() < (actFromAt(notice) ?? 0)) return "TooEarly";
      taken.push([notice.withdrawn === true, clock.now() - dawn]);
      return "Taken";
    };
    stage.start();
    await stage.pass(hours(25));
    expect(taken).toEqual([
      [true, hours(24) - minutes(5)],
      [false, hours(24)],
    ]);
    expect(queue.size).toBe(0);
    expect(cluster.troubles).toEqual([]);
  });

  it("survives an exception of its listener", async () => {
    const onNotice = cluster.onNotice.bind(cluster);
    let failures = 0;
    cluster.onNotice = (word) => {
      failures += 1;
      if (failures === 1) throw new TypeError("undefined is not a function");
      return onNotice(word);
    };
    queue.send(rebalance(stage.about(ours)));
    stage.start();
    await stage.pass(seconds(1));
    expect(cluster.words).toHaveLength(1);
    expect(cluster.codes()).toEqual(["BROKEN_INVARIANT"]);
  });
});

describe("a run of the feed", () => {
  it("ends when it is aborted, also while the source of the credentials does not respond", async () => {
    const source = await new ScriptedServer(() => undefined).start();
    Object.assign(process.env, {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${source.url}/v1/credentials`,
      ...{ AWS_REGION: "eu-west-1", AWS_EC2_METADATA_DISABLED: "true" },
    });
    delete process.env.AWS_ACCESS_KEY_ID;
    const url = "http://127.0.0.1:9/123456789012/q";
    const client = new SqsClient({ url, clock: realClock, hasEndpoint: false });
    const rng = () => 0.5;
    const feed = new SqsFeed({ client, receivers: 2, clock: realClock, rng, unknown: "Leave" });
    const stop = new AbortController();
    const listener = new QueueListener({});
    const run = feed.run(listener, stop.signal);
    const isAsked = async () => source.seen.length > 0;
    await waitUntil(isAsked, { what: "the credentials are looked for", timeoutMs: 5000 });
    const beganMs = performance.now();
    stop.abort(new Error("the lead is lost"));
    await run;
    expect(performance.now() - beganMs).toBeLessThan(1000);
    await source.stop();
  });
});
