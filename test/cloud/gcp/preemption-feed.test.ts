import { readFileSync } from "node:fs";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PreemptionFeed, readPreemption } from "../../../src/cloud/gcp/preemption-feed.ts";
import type { FeedListener } from "../../../src/contracts/cloud.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import type { InstanceNotice } from "../../../src/core/notice/instance-notice.ts";
import { instant, minutes, plus, seconds } from "../../../src/core/time/time.ts";
import { LastcallError } from "../../../src/errors.ts";
import { type ComputeWorld, startComputeWorld, zone } from "../../support/compute-world.ts";
import { foreignText } from "../../support/foreign-text.ts";

const otherZone = "us-central1-f";
const listPath = `/zones/${zone}/operations`;

let world: ComputeWorld;
let stop: AbortController;
let running: Promise<void>;
/** The reported machines, each with the seconds on the clock. */
let heard: string[];
let words: InstanceNotice[];
let troubles: LastcallError[];
/** The listener's result; a test may make it fail. */
let answer: () => Promise<"Taken" | "NoNode">;
let nodes: readonly string[];

beforeEach(async () => {
  world = await startComputeWorld();
  stop = new AbortController();
  [heard, words, troubles] = [[], [], []];
  answer = async () => "Taken";
  for (const name of ["n1", "n2", "n3"]) world.addMachine(name);
  nodes = ["n1", "n2", "n3"].map((name) => `gce://project1/${zone}/${name}`);
});

afterEach(async () => {
  stop.abort();
  await world.pass(running);
  await world.close();
});

function listen(): void {
  const listener: FeedListener = {
    onHook: async () => "LeftAlone" as const,
    onNotice: (word) => {
      words.push(word);
      heard.push(`${Math.floor(world.clock.monotonic() / 1000)} ${word.machine.split("/").at(-1)}`);
      return answer();
    },
    onError: (error) => troubles.push(error),
  };
  const { client, clock, launchTimes } = world;
  const machines = () => nodes;
  const options = { client, clock, rng: () => 0.5, pollMs: seconds(10), machines, launchTimes };
  running = new PreemptionFeed(options).run(listener, stop.signal);
}

/** Advances the clock to this many seconds after the world's start. */
function until(atSeconds: number): Promise<void> {
  return world.passUntil(() => world.clock.monotonic() >= atSeconds * 1000);
}

function polls(path = listPath): number {
  return world.server.log.filter((call) => call.path === path).length;
}

describe("the preemptions of a zone", () => {
  it("are reported once each, with the loss of power as the deadline", async () => {
    listen();
    await until(11);
    const { insertAt, name } = world.server.model.preempt(zone, "n2");
    await until(60);
    expect(heard).toEqual(["20 n2"]);
    expect(words[0]).toEqual({
      machine: `gce://project1/${zone}/n2`,
      notice: {
        cause: "Preempted",
        noticedAt: insertAt,
        deadlineAt: plus(insertAt, seconds(30)),
        source: "gcp/operations",
        eventId: name,
      },
    });
    expect(troubles).toEqual([]);
  });

  it("are polled with one request per round and with one permission", async () => {
    listen();
    await until(60);
    expect(polls()).toBeGreaterThanOrEqual(6);
    expect(polls()).toBeLessThanOrEqual(7);
    expect([...world.server.permissionsUsed]).toEqual(["compute.zoneOperations.list"]);
  });

  it("are polled with one request per round after days of operations", async () => {
    world.server.model.addOperations(zone, 1200);
    await world.pass(world.clock.sleep(minutes(3)));
    world.server.model.addOperations(zone, 1);
    listen();
    await until(181 + 55);
    expect([5, 6]).toContain(polls());
  });

  it("are found behind a page of other operations", async () => {
    listen();
    await until(11);
    world.server.model.addOperations(zone, 600);
    world.server.model.preempt(zone, "n2");
    await until(30);
    expect(heard).toEqual(["20 n2"]);
    expect(world.server.log.some(({ query }) => query.pageToken !== undefined)).toBe(true);
  });

  it("are not read back to before an outage", async () => {
    listen();
    await until(11);
    world.server.model.addOperations(zone, 1);
    await until(25);
    world.server.failNext({ kind: "Drop" }, { match: /operations/, times: 1_000 });
    for (let part = 0; part < 3; part++) {
      world.server.model.addOperations(zone, 400);
      await world.pass(world.clock.sleep(minutes(5)));
    }
    world.server.stopFailing();
    const before = polls();
    await world.passUntil(() => polls() > before);
    await until(world.clock.monotonic() / 1000 + 5);
    expect(polls()).toBe(before + 1);
  });

  it("of the last minute are reported at the start, and none from before", async () => {
    // Of no group, which would replace them meanwhile.
    for (const name of ["m1", "m2"]) world.server.model.addMachine({ name, zone });
    world.server.model.preempt(zone, "m1");
    await world.pass(world.clock.sleep(seconds(61)));
    world.server.model.preempt(zone, "m2");
    await world.pass(world.clock.sleep(seconds(50)));
    listen();
    await until(150);
    expect(heard).toEqual(["111 m2"]);
  });

  it("are all reported when a whole zone is preempted at once", async () => {
    const many = Array.from({ length: 700 }, (_, index) => `m${index}`);
    for (const name of many) world.server.model.addMachine({ name, zone });
    listen();
    await until(11);
    for (const name of many) world.server.model.preempt(zone, name);
    await until(45);
    expect(new Set(words.map(({ machine }) => machine)).size).toBe(700);
    expect(words).toHaveLength(700);
  });

  it("that could not be recorded are reported again", async () => {
    answer = () => Promise.reject(new LastcallError("API_UNREACHABLE", "the API server is away"));
    listen();
    await until(11);
    world.server.model.preempt(zone, "n1");
    await until(45);
    expect(heard).toEqual(["20 n1", "30 n1", "40 n1"]);
    expect(troubles.map(({ code }) => code)).toEqual(Array(3).fill("API_UNREACHABLE"));
    answer = async () => "NoNode";
    await until(140);
    expect(heard).toEqual(["20 n1", "30 n1", "40 n1", "50 n1"]);
  });

  it("are polled in no zone without a node, and in a new zone from its first node on", async () => {
    nodes = [];
    listen();
    await until(25);
    expect(world.server.log).toEqual([]);
    nodes = [`gce://project1/${otherZone}/n9`, "aws:///eu-west-1a/i-0abc"];
    await until(45);
    expect(polls()).toBe(0);
    expect(polls(`/zones/${otherZone}/operations`)).toBeGreaterThan(0);
  });
});

describe("a preemption that is reported late", () => {
  const launches = () => polls(`/zones/${zone}/instances`);

  /** Preempts n1, and lists it half a minute later. */
  async function preemptAndMiss(meanwhile: () => void): Promise<void> {
    world.server.model.preempt(zone, "n1");
    await world.pass(world.clock.sleep(seconds(25)));
    meanwhile();
    await world.pass(world.clock.sleep(seconds(5)));
    listen();
  }

  it("does not concern a new machine of the same name", async () => {
    await preemptAndMiss(() => world.server.model.replaceMachine(zone, "n1"));
    await until(75);
    expect(heard).toEqual([]);
    expect(troubles).toEqual([]);
    expect(launches()).toBe(1);
  });

  it("concerns the machine that still has the name", async () => {
    await preemptAndMiss(() => world.server.model.preempt(zone, "n3"));
    await until(75);
    expect(heard).toEqual(["30 n3", "30 n1"]);
    expect(launches()).toBe(1);
  });

  it.each([
    ["does not answer", { kind: "Hang" }, []],
    ["refuses", { kind: "Refuse", status: 403, reason: "forbidden" }, ["CLOUD_RIGHT_MISSING"]],
    ["fails", { kind: "Drop" }, []],
  ] as const)("is reported within a second if Compute Engine %s", async (_, fault, codes) => {
    await preemptAndMiss(() => {
      world.server.model.replaceMachine(zone, "n1");
      world.server.failNext(fault, { match: /\/instances$/, times: 99 });
    });
    await until(75);
    expect(heard).toHaveLength(1);
    expect(heard[0]).toMatch(/^3[01] n1$/);
    expect(troubles.map(({ code }) => code)).toEqual(codes);
  });
});

describe("a zone that cannot be polled", () => {
  it("does not delay the notices of another zone", async () => {
    nodes = [...nodes, `gce://project1/${otherZone}/n9`];
    const match = new RegExp(otherZone);
    world.server.failNext({ kind: "Hang" }, { match, times: 99 });
    listen();
    await until(11);
    world.server.model.preempt(zone, "n1");
    await until(25);
    expect(heard).toEqual(["20 n1"]);
  });

  it("is polled less and less often, and its notices are reported once it responds", async () => {
    world.server.deny("compute.zoneOperations.list");
    listen();
    await until(600);
    expect(polls()).toBeLessThan(10);
    expect(new Set(troubles.map(({ code }) => code))).toEqual(new Set(["CLOUD_RIGHT_MISSING"]));
    expect(troubles[0]?.message).toContain("expected the permission compute.zoneOperations.list");
    world.server.allow("compute.zoneOperations.list");
    await until(900);
    world.server.model.preempt(zone, "n3");
    await until(930);
    expect(words.map(({ machine }) => machine)).toEqual([`gce://project1/${zone}/n3`]);
  });
});

it.each(["UNREACHABLE", "PARTIAL_SUCCESS", "LIST_OVERHEAD_QUOTA_EXCEED"])(
  "a list with the warning %s is no answer, but what it names is not lost",
  async (code) => {
    listen();
    await until(11);
    world.server.failNext({ kind: "Warn", code }, { times: 2 });
    world.server.model.preempt(zone, "n1");
    await until(100);
    expect(words.map(({ machine }) => machine)).toEqual([`gce://project1/${zone}/n1`]);
    expect(troubles.map((one) => one.code)).toEqual(Array(2).fill("CLOUD_UNREACHABLE"));
    expect(troubles[0]?.message).toContain(`found the warning ${code}`);
  },
);

it("the pages before one that fails are not lost", async () => {
  listen();
  await until(11);
  world.server.model.preempt(zone, "n1");
  world.server.model.addOperations(zone, 600);
  // The first page of the next poll comes, and the second does not.
  world.server.failNext({ kind: "Warn", code: "NO_RESULTS_ON_PAGE" }, { match: /operations/ });
  world.server.failNext({ kind: "Drop" }, { match: /operations/ });
  await until(25);
  expect(heard).toEqual(["20 n1"]);
  expect(troubles.map(({ code }) => code)).toEqual(["CLOUD_UNREACHABLE"]);
  expect(world.server.log.some(({ query }) => query.pageToken !== undefined)).toBe(true);
});

it("a page without results is followed by the next one", async () => {
  listen();
  await until(11);
  const text = JSON.stringify({ warning: { code: "NO_RESULTS_ON_PAGE" }, nextPageToken: "0" });
  world.server.failNext({ kind: "Text", text }, { match: /operations/ });
  world.server.model.preempt(zone, "n1");
  await until(25);
  expect([heard, troubles]).toEqual([["20 n1"], []]);
});

it("a preemption missed in an outage is not reported once its machine is long gone", async () => {
  listen();
  await until(11);
  world.server.failNext({ kind: "Drop" }, { match: /operations/, times: 1_000 });
  await until(60);
  world.server.model.preempt(zone, "n1");
  await until(400);
  world.server.stopFailing();
  const before = polls();
  await world.passUntil(() => polls() > before);
  await until(world.clock.monotonic() / 1000 + 30);
  expect(heard).toEqual([]);
  world.server.model.preempt(zone, "n2");
  await until(world.clock.monotonic() / 1000 + 15);
  expect(words.map(({ machine }) => machine)).toEqual([`gce://project1/${zone}/n2`]);
});

const recorded = JSON.parse(
  readFileSync(new URL("../../data/gce/operations-2019.json", import.meta.url), "utf8"),
) as { operations: Record<string, Record<string, unknown>[]> };

describe("an operation", () => {
  const at = instant(Date.parse("2019-03-28T00:00:00-07:00"));
  const ref = { project: "first-220321", zone: "us-central1-c", at };
  const [real = {}] = recorded.operations["compute.instances.preempted"] ?? [];

  it("as recorded names the machine and the time", () => {
    const noticedAt = Date.parse("2019-03-27T21:55:16.317-07:00");
    expect(readPreemption(real, ref)).toMatchObject({
      kind: "Preempted",
      instanceNotice: {
        machine: "gce://first-220321/us-central1-c/karsul4",
        notice: {
          noticedAt,
          deadlineAt: noticedAt + 30_000,
          eventId: "systemevent-1553748916317-585205c3a2be6-4acf9d68-acb90ff5",
        },
      },
    });
  });

  it.each(Object.keys(recorded.operations).filter((type) => !type.endsWith("preempted")))(
    "of the type %s is no preemption",
    (type) => {
      for (const one of recorded.operations[type] ?? []) {
        expect(readPreemption(one, ref)).toEqual({ kind: "Other" });
      }
    },
  );

  it.each([
    ["no time", { insertTime: undefined }],
    ["an invalid time", { insertTime: "soon" }],
    ["a time far ahead", { insertTime: "2039-03-28T00:00:00-07:00" }],
    ["no name", { name: "", id: 5 }],
    ["an invalid name", { name: "a/b" }],
    ["no target", { targetLink: undefined }],
    ["a target in another zone", { targetLink: "/zones/us-east1-b/instances/n1" }],
    ["a target that is not an instance", { targetLink: "/zones/us-central1-c/disks/n1" }],
    ["a target with an invalid name", { targetLink: "/zones/us-central1-c/instances/N_1" }],
  ])("with %s is unreadable", (_, change) => {
    const reading = readPreemption({ ...real, ...change }, ref);
    expect(reading).toMatchObject({
      kind: "Unreadable",
      problem: expect.stringMatching(/^found /),
    });
  });

  it("of any form is never read as another zone's or a later one", () => {
    fc.assert(
      fc.property(foreignText([JSON.stringify(real)]), (text) => {
        const item = objectOf(text);
        const reading = readPreemption(item, ref);
        if (reading.kind !== "Preempted") return;
        expect(reading.instanceNotice.machine).toMatch(
          /^gce:\/\/first-220321\/us-central1-c\/[a-z][-a-z0-9]*$/,
        );
        expect(reading.instanceNotice.notice.noticedAt).toBeLessThanOrEqual(plus(at, minutes(10)));
        expect(reading.instanceNotice.notice.eventId).toMatch(/^[-A-Za-z0-9]{1,120}$/);
      }),
      { seed: 11, numRuns: 500 },
    );
  });
});

function objectOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

it("a list of any form does not end the feed", async () => {
  const sample = JSON.stringify({
    items: recorded.operations["compute.instances.preempted"],
    nextPageToken: "more",
  });
  const texts = fc.sample(foreignText([sample]), { seed: 5, numRuns: 60 });
  const rng = seededRng(1);
  listen();
  for (const text of texts) {
    world.server.failNext({ kind: "Text", text }, { match: /operations/ });
    if (rng() < 0.3) await until(world.clock.monotonic() / 1000 + 10);
  }
  world.server.stopFailing();
  await until(world.clock.monotonic() / 1000 + 700);
  world.server.model.preempt(zone, "n1");
  await until(world.clock.monotonic() / 1000 + 30);
  expect(words.at(-1)?.machine).toBe(`gce://project1/${zone}/n1`);
  expect(troubles.length).toBeGreaterThan(5);
});
