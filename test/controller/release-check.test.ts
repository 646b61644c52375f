import { afterEach, describe, expect, it } from "vitest";
import type { InstanceReleaser, Releasability } from "../../src/contracts/cloud.ts";
import { hours, minutes, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import {
  departures,
  ModelWorld,
  nodes,
  policies,
  spotPolicy,
  webWorkload,
} from "../support/model-world.ts";

const running: { stop: AbortController; done: Promise<void> }[] = [];

afterEach(async () => {
  for (const { stop, done } of running.splice(0)) {
    stop.abort();
    await done;
  }
});

const names = ["n0", "n1", "n2"];

/**
 * Three nodes with a lifetime of four hours; with a spacing of 15 minutes the first leaves after
 * three.
 */
async function fleet(
  releaserFor: (world: ModelWorld) => InstanceReleaser | undefined,
  spec: Readonly<Record<string, unknown>> = {},
): Promise<ModelWorld> {
  const world = new ModelWorld();
  for (const name of names) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  spotPolicy(world, { lifetime: { max: "4h" }, ...spec });
  await world.pass(seconds(5));
  const stop = new AbortController();
  const releaser = releaserFor(world);
  const done = world.startController(stop.signal, { releaserFor: () => releaser });
  running.push({ stop, done });
  await world.pass(seconds(5));
  return world;
}

type Check = InstanceReleaser["check"];

/** A cloud whose answers a test can change; `asked` has the providerID of each question. */
function cloudThat(check: Check) {
  const cloud = { check, asked: [] as string[] };
  const releaserFor = (world: ModelWorld): InstanceReleaser => ({
    ...world.releaser,
    check: (question, signal) => {
      cloud.asked.push(question.providerID);
      return cloud.check(question, signal);
    },
  });
  return { cloud, releaserFor };
}

const granted: Check = async () => ({ kind: "Possible", permission: "Granted" });
const refused: Check = async () => ({ kind: "Impossible", problem: "the permission is missing" });
const silent: Check = () => new Promise<Releasability>(() => {});
const tokenless: Check = async () => {
  throw new LastcallError("CLOUD_UNREACHABLE", "Cannot get a token: connection refused");
};

interface Ledger {
  readonly phase: string;
  readonly reason: string;
  readonly timeline: readonly { readonly step: string }[];
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

function feasible(world: ModelWorld): Condition | undefined {
  const status = world.get(`${policies}/spot`)?.status as { conditions?: Condition[] } | undefined;
  return status?.conditions?.find(({ type }) => type === "Feasible");
}

/** The phase and the reason of each departure. */
function standings(world: ModelWorld): readonly string[] {
  return world.list(departures).map(({ status }) => {
    const { phase, reason } = status as { phase: string; reason?: string };
    return `${phase} ${reason}`;
  });
}

function cordons(world: ModelWorld): number {
  return world.steps.filter((step) => step.startsWith("cordon")).length;
}

function said(world: ModelWorld, reason: string): readonly string[] {
  return world.events.flatMap((event) =>
    event.reason === reason && event.about.kind === "Node" ? event.about.name : [],
  );
}

describe("a fleet whose machines cannot be released", () => {
  it("is left alone for 72 hours, with one Event per node", async () => {
    const world = await fleet(() => undefined);
    await world.pass(hours(72));
    expect(world.steps).toEqual([]);
    expect(standings(world)).toEqual(names.map(() => "Held ReleaseImpossible"));
    expect(said(world, "ReleaseImpossible").toSorted()).toEqual(names);
  });

  it("is reported by its policy before the first departure is due", async () => {
    const world = await fleet(() => undefined);
    await world.pass(minutes(1));
    expect(feasible(world)).toMatchObject({ status: "False", reason: "ReleaseImpossible" });
    expect(feasible(world)?.message).toContain("None of 3 departures can start: this version");
    const labels = { policy: "spot", reason: "ReleaseImpossible" };
    expect(world.gauges.get("lastcall_plan_unreleasable")).toEqual([{ labels, value: 3 }]);
  });

  it("is drained at a notice all the same", async () => {
    const world = await fleet(() => undefined);
    world.notice("n1", seconds(120));
    await world.pass(seconds(30));
    expect(world.stepsOf("n1").slice(0, 2)).toEqual(["cordon", "evict"]);
  });

  it("is drained if the policy says release None", async () => {
    const world = await fleet(() => undefined, { instance: { release: "None" } });
    await world.pass(hours(4));
    expect(cordons(world)).toBe(3);
    expect(feasible(world)?.reason).not.toBe("ReleaseImpossible");
  });
});

describe("a missing permission", () => {
  it("is found at startup with one question, before any departure is due", async () => {
    const { cloud, releaserFor } = cloudThat(refused);
    const world = await fleet(releaserFor);
    await world.pass(seconds(10));
    expect(cloud.asked).toHaveLength(1);
    expect(feasible(world)).toMatchObject({ status: "False", reason: "ReleaseImpossible" });
    expect(feasible(world)?.message).toContain("the permission is missing");
  });

  it("holds every departure until it is granted", async () => {
    const { cloud, releaserFor } = cloudThat(refused);
    const world = await fleet(releaserFor);
    await world.pass(hours(5));
    expect(cordons(world)).toBe(0);
    expect(new Set(standings(world))).toEqual(new Set(["Held ReleaseImpossible"]));
    cloud.check = granted;
    await world.passUntil(() => world.released.length === 3, hours(1));
  });

  it("holds departures that a person requested, too", async () => {
    const { cloud, releaserFor } = cloudThat(refused);
    const world = await fleet(releaserFor);
    const uid = world.get(`${nodes}/n2`)?.metadata?.uid ?? "";
    world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name: "by-hand" },
      spec: { node: { name: "n2", uid }, cause: "Manual", source: "person" },
    });
    await world.pass(minutes(5));
    expect(world.steps).toEqual([]);
    const status = world.get(`${departures}/by-hand`)?.status;
    expect(status).toMatchObject({ phase: "Held", reason: "ReleaseImpossible" });
    cloud.check = granted;
    await world.passUntil(() => world.released.length === 1, minutes(5));
  });

  it("is found by the last check before the cordon if it was withdrawn meanwhile", async () => {
    const { cloud, releaserFor } = cloudThat(granted);
    const world = await fleet(releaserFor);
    // The departure starts with the write of its status; its own last check comes after that.
    world.beforeWrite = ({ method, path, body }) => {
      const phase = (body as { status?: { phase?: string } } | undefined)?.status?.phase;
      if (method !== "GET" && path.endsWith("/status") && phase === "Preparing") {
        cloud.check = refused;
      }
    };
    await world.pass(hours(5));
    expect(world.steps).toEqual([]);
    expect(standings(world)).toEqual(names.map(() => "Held ReleaseImpossible"));
    expect(world.list(departures).map(({ status }) => status)).not.toContainEqual(
      expect.objectContaining({ startedAt: expect.anything() }),
    );
    expect(said(world, "DepartureStarted")).toHaveLength(1);
    cloud.check = granted;
    world.beforeWrite = () => {};
    await world.passUntil(() => world.released.length === 3, hours(1));
  });

  it("halts no waves if that check finds it, as nothing has started", async () => {
    const { cloud, releaserFor } = cloudThat(granted);
    const world = await fleet(releaserFor, { waves: { sizes: [1] } });
    world.beforeWrite = ({ method, path, body }) => {
      const phase = (body as { status?: { phase?: string } } | undefined)?.status?.phase;
      if (method !== "GET" && path.endsWith("/status") && phase === "Preparing") {
        cloud.check = tokenless;
      }
    };
    await world.pass(hours(3));
    expect(standings(world)).toContain("Held CloudUnreachable");
    cloud.check = granted;
    world.beforeWrite = () => {};
    await world.passUntil(() => world.released.length === 3, hours(2));
  });
});

describe("a failed release after the drain", () => {
  async function failing(fault: LastcallError) {
    const cloud: { fault: LastcallError | undefined } = { fault };
    const world = await fleet(({ releaser }) => ({
      ...releaser,
      release: (...request) =>
        cloud.fault ? Promise.reject(cloud.fault) : releaser.release(...request),
    }));
    return { cloud, world };
  }

  it("is reported with its cause by status, Event and metric", async () => {
    const fault = new LastcallError("CLOUD_REFUSED", "Cannot recreate n0: the quota is used up");
    const { world } = await failing(fault);
    const ended = () =>
      world.list(departures).find(({ status }) => "endedAt" in (status as object))?.status;
    await world.passUntil(() => ended() !== undefined, hours(4));
    expect(ended()).toMatchObject({
      ...{ outcome: "Failed", reason: "ReleaseFailed" },
      message: expect.stringContaining("the quota is used up"),
    });
    const event = world.events.find(({ reason }) => reason === "DepartureEnded");
    expect(event).toMatchObject({ type: "Warning" });
    expect(event?.message).toContain("the quota is used up");
    expect(world.counted).toContain("lastcall_errors_total code=CLOUD_REFUSED");
  });

  it("is reported once for an outage, and retried until it succeeds", async () => {
    const fault = new LastcallError("CLOUD_UNREACHABLE", "Cannot recreate: no answer");
    const { cloud, world } = await failing(fault);
    const told = () =>
      world.list(departures).filter(({ status }) => {
        const { phase, message = "" } = status as { phase?: string; message?: string };
        return (
          phase === "Releasing" && message.includes("being retried: Cannot recreate: no answer")
        );
      });
    await world.passUntil(() => told().length === 1, hours(4));
    await world.pass(minutes(5));
    const status = told()[0]?.status as { timeline: { step: string }[] } | undefined;
    expect(status?.timeline.filter(({ step }) => step === "ReleaseRetried")).toHaveLength(1);
    cloud.fault = undefined;
    await world.passUntil(() => world.released.length > 0, minutes(1));
  });
});

describe("a release that never reaches the cloud", () => {
  const fault = new LastcallError("CLOUD_UNREACHABLE", "Cannot recreate: no answer");
  const lost: InstanceReleaser["release"] = () => Promise.reject(fault);

  it("is given up after instance.awaitMachine, and the node is uncordoned", async () => {
    const spec = { instance: { awaitMachine: "10m" } };
    const world = await fleet(({ releaser }) => ({ ...releaser, release: lost }), spec);
    await world.passUntil(() => cordons(world) === 1, hours(4));
    const cordoned = world.steps.find((step) => step.startsWith("cordon"))?.split(" ")[1] ?? "";
    await world.passUntil(() => world.podsOn(cordoned).length === 0, minutes(2));
    await world.pass(minutes(9));
    expect(world.statusOf(cordoned).phase).toBe("Releasing");
    // One more minute is for the cloud to show whether it took the last request after all.
    await world.pass(minutes(3));
    expect(world.statusOf(cordoned)).toMatchObject({
      ...{ phase: "Ended", outcome: "Failed", reason: "ReleaseFailed" },
      message: expect.stringContaining("no answer, retried for 10m (instance.awaitMachine)"),
    });
    expect(world.marksOf(cordoned)).toEqual([]);
    expect(world.released).toEqual([]);
  });

  it("is reported at a notice, and the machine is then left to the cloud", async () => {
    const spec = { instance: { awaitMachine: "1m" }, onNotice: { spotInterruption: "Release" } };
    const world = await fleet(({ releaser }) => ({ ...releaser, release: lost }), spec);
    world.notice("n1", minutes(4));
    await world.pass(minutes(3));
    const { timeline, phase, reason } = world.statusOf("n1") as Ledger;
    expect({ phase, reason }).toEqual({ phase: "Releasing", reason: "ReleaseFailed" });
    expect(timeline.map(({ step }) => step)).toContain("ReleaseFailed");
    expect(world.marksOf("n1")).toContain("unschedulable");
    world.api.handle({ method: "DELETE", path: `${nodes}/n1` });
    await world.pass(seconds(5));
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Preempted" });
  });
});

describe("a cloud that cannot be asked", () => {
  it.each([
    ["does not respond", silent, "has not responded within 10 s"],
    ["rejects the token", tokenless, "connection refused"],
  ])("because it %s holds every departure until it can", async (_, check, cause) => {
    const { cloud, releaserFor } = cloudThat(check);
    const world = await fleet(releaserFor);
    await world.pass(minutes(1));
    expect(feasible(world)).toMatchObject({ status: "False", reason: "CloudUnreachable" });
    expect(feasible(world)?.message).toContain(cause);
    await world.pass(hours(5));
    expect(cordons(world)).toBe(0);
    expect(standings(world)).toContain("Held CloudUnreachable");
    expect(said(world, "CloudUnreachable").length).toBeGreaterThan(0);
    cloud.check = granted;
    await world.passUntil(() => world.released.length === 3, hours(1));
  });

  it("is asked a few questions a minute, however many nodes are due", async () => {
    const { cloud, releaserFor } = cloudThat(silent);
    const world = await fleet(releaserFor);
    for (let count = 0; count < 60; count += 1) world.addNode(`late-${count}`, "z");
    await world.pass(hours(5));
    const before = cloud.asked.length;
    await world.pass(minutes(10));
    expect(cloud.asked.length - before).toBeGreaterThan(0);
    // Four in parallel, with at most one round of new ones and one of old ones a minute.
    expect(cloud.asked.length - before).toBeLessThanOrEqual(10 * 8);
  });

  it("delays no notice, not even one that arrives during the last check", async () => {
    const { cloud, releaserFor } = cloudThat(granted);
    const world = await fleet(releaserFor);
    let begun: string | undefined;
    world.beforeWrite = ({ method, path, body }) => {
      const phase = (body as { status?: { phase?: string } } | undefined)?.status?.phase;
      if (method !== "GET" && path.endsWith("/status") && phase === "Preparing") {
        begun ??= path.split("/").at(-2)?.slice(0, 2);
        cloud.check = silent;
      }
    };
    await world.passUntil(() => begun !== undefined, hours(5));
    await world.pass(seconds(1));
    expect(cordons(world)).toBe(0);
    world.notice(begun ?? "", seconds(120));
    await world.pass(seconds(2));
    expect(world.stepsOf(begun ?? "")[0]).toBe("cordon");
  });
});
