import { afterEach, describe, expect, it } from "vitest";
import type { InstanceReleaser } from "../../src/contracts/cloud.ts";
import type { KubeAnswer } from "../../src/contracts/kube-api.ts";
import type { MachineState } from "../../src/core/cluster/machine.ts";
import { hours, type Instant, instant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { LastcallError } from "../../src/errors.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

const running: { stop: AbortController; done: Promise<void> }[] = [];

afterEach(async () => {
  for (const { stop, done } of running.splice(0)) {
    stop.abort();
    await done;
  }
});

type Look = InstanceReleaser["describe"];

const unreachable = () =>
  Promise.reject(new LastcallError("CLOUD_UNREACHABLE", "Cannot look: no answer"));
const unauthorized = () =>
  Promise.reject(new LastcallError("CLOUD_CREDENTIALS", "Cannot look: the token has expired"));

/** A cloud that accepts the first request to release n1, but whose answer is lost. */
function lostAnswer(world: ModelWorld, look: { now: Look }) {
  const asked: string[] = [];
  const release: InstanceReleaser["release"] = async (request, signal) => {
    if (asked.length === 0) {
      await request.lastLook();
      asked.push("taken");
      throw new LastcallError("CLOUD_UNREACHABLE", "Cannot release: the connection was reset");
    }
    await look.now(request.providerID, signal);
    asked.push("again");
    return world.releaser.release(request, signal);
  };
  const describe: Look = (providerID, signal) =>
    asked.length === 0 ? world.releaser.describe(providerID, signal) : look.now(providerID, signal);
  return { asked, releaser: { ...world.releaser, release, describe } };
}

function start(world: ModelWorld, releaserFor: () => InstanceReleaser | undefined): void {
  const stop = new AbortController();
  running.push({ stop, done: world.startController(stop.signal, { releaserFor }) });
}

/** Three nodes, one of which a person wants to leave. */
async function fleet(): Promise<ModelWorld> {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 6 });
  spotPolicy(world, { instance: { release: "Recreate", awaitMachine: "10m" } });
  await world.pass(seconds(5));
  const uid = world.get(`${nodes}/n1`)?.metadata?.uid ?? "";
  world.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: "n1-asked" },
    spec: { node: { name: "n1", uid }, cause: "Manual", source: "person" },
  });
  return world;
}

describe("a node whose release was requested from a cloud that then fails", () => {
  it.each([
    ["does not respond, for an hour", minutes(50), unreachable],
    ["rejects the credentials, for an hour", minutes(50), unauthorized],
    [
      "shows the machine as stopping, however long",
      hours(2),
      async (): Promise<MachineState> => {
        return { kind: "Present", id: "n1-1", bornAt: undefined, running: false };
      },
    ],
  ] as const)("stays cordoned while that %s", async (_, lastsMs, fault) => {
    const world = await fleet();
    const look: { now: Look } = { now: fault };
    const { asked, releaser } = lostAnswer(world, look);
    releaser.release = ((inner) => async (request, signal) => {
      if (asked.length > 0 && look.now === fault) {
        await fault();
        throw new LastcallError("CLOUD_REFUSED", "Cannot release: it is on its way");
      }
      return inner(request, signal);
    })(releaser.release);
    start(world, () => releaser);
    await world.passUntil(() => asked.length > 0, minutes(10));
    await world.pass(lastsMs);
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.statusOf("n1")).toMatchObject({ phase: "Releasing" });

    look.now = (providerID, signal) => world.releaser.describe(providerID, signal);
    await world.passUntil(() => world.statusOf("n1").phase === "Ended", minutes(2));
    expect(world.statusOf("n1")).toMatchObject({ outcome: "Planned" });
    expect(world.released).toHaveLength(1);
  });

  it.each([
    ["does not respond", unreachable],
    ["rejects the credentials", unauthorized],
  ])(
    "is given back if its kubelet reports for more than an hour while that %s",
    async (_, fault) => {
      const world = await fleet();
      const { asked, releaser } = lostAnswer(world, { now: fault });
      releaser.release = ((inner) => async (request, signal) => {
        if (asked.length > 0) await fault();
        return inner(request, signal);
      })(releaser.release);
      start(world, () => releaser);
      await world.passUntil(() => asked.length > 0, minutes(10));
      await world.passUntil(() => world.statusOf("n1").phase === "Ended", hours(2));
      expect(world.statusOf("n1")).toMatchObject({ outcome: "Failed", reason: "ReleaseFailed" });
      expect(world.marksOf("n1")).toEqual([]);
    },
  );

  it("stays cordoned although a check ran before the cloud showed the request it had accepted", async () => {
    const world = await fleet();
    let askedAt: number | undefined;
    const isLate = () => world.clock.now() >= (askedAt ?? Number.POSITIVE_INFINITY) + 20_000;
    const releaser: InstanceReleaser = {
      ...world.releaser,
      release: async (request) => {
        await request.lastLook();
        if (askedAt !== undefined) {
          throw new LastcallError("CLOUD_REFUSED", "Cannot release: it is not yours");
        }
        askedAt = world.clock.now();
        throw new LastcallError("CLOUD_UNREACHABLE", "Cannot release: the connection was reset");
      },
      describe: async (...asked) => {
        const state = await world.releaser.describe(...asked);
        return state.kind === "Present" && isLate() ? { ...state, running: false } : state;
      },
    };
    start(world, () => releaser);
    await world.passUntil(() => askedAt !== undefined, minutes(10));
    await world.pass(hours(1));
    expect(world.marksOf("n1")).toContain("unschedulable");
    expect(world.statusOf("n1")).toMatchObject({ phase: "Releasing" });
  });

  it("is uncordoned as soon as a check shows that its machine stays, past the limit", async () => {
    const world = await fleet();
    const refuse = () =>
      Promise.reject(
        new LastcallError("CLOUD_REFUSED", "Cannot release: try later", { retryable: true }),
      );
    const releaser = { ...world.releaser, release: refuse };
    start(world, () => releaser);
    await world.passUntil(() => world.statusOf("n1").phase === "Ended", minutes(15));
    expect(world.statusOf("n1")).toMatchObject({ outcome: "Failed", reason: "ReleaseFailed" });
    expect(world.marksOf("n1")).toEqual([]);
  });

  it("stays cordoned under the next leader whose first check fails permanently", async () => {
    const world = await fleet();
    const look: { now: Look } = { now: unreachable };
    const { asked, releaser } = lostAnswer(world, look);
    start(world, () => releaser);
    await world.passUntil(() => asked.length > 0, minutes(10));
    const [former] = running.splice(0);
    former?.stop.abort();
    await former?.done;
    look.now = unauthorized;
    start(world, () => releaser);
    await world.pass(minutes(30));
    expect(world.marksOf("n1")).toContain("unschedulable");
  });
});

describe("a release that a new leader continues", () => {
  it("uses the mode of the previous leader, even if the labels of its Node have changed", async () => {
    const world = await fleet();
    const label = (value: string | null): void => {
      const patchType = "application/merge-patch+json";
      const body = { metadata: { labels: { "karpenter.sh/nodepool": value } } };
      world.api.handle({ method: "PATCH", path: `${nodes}/n1`, patchType, body });
    };
    label("spot");
    const modes: string[] = [];
    let isBlocked = true;
    const releaser: InstanceReleaser = {
      ...world.releaser,
      release: async (request, signal) => {
        modes.push(request.mode);
        if (!isBlocked) return world.releaser.release(request, signal);
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        });
      },
    };
    start(world, () => releaser);
    await world.passUntil(() => modes.length > 0, minutes(10));
    const [former] = running.splice(0);
    former?.stop.abort();
    await former?.done;
    label(null);
    isBlocked = false;
    start(world, () => releaser);
    await world.passUntil(() => world.statusOf("n1").phase === "Ended", minutes(5));
    expect(modes).toEqual(["NodeClaim", "NodeClaim"]);
    expect(world.statusOf("n1")).toMatchObject({ outcome: "Planned" });
  });
});

describe("the first lookup of a machine to release", () => {
  interface Lookup {
    /** The machine under n1's providerID was born then, in seconds after the start. */
    readonly born: number;
    /** By how many seconds the cloud's clock is ahead. */
    readonly ahead?: number;
    readonly startedAt?: string;
    /** Nothing is heard of the machine any more that was drained. */
    readonly isSilent?: boolean;
  }

  async function releaseOf({ born, ahead, startedAt, isSilent }: Lookup): Promise<ModelWorld> {
    const world = await fleet();
    if (startedAt !== undefined) {
      const patchType = "application/merge-patch+json";
      const body = { status: { phase: "Preparing", startedAt } };
      world.api.handle({ method: "PATCH", path: `${departures}/n1-asked/status`, patchType, body });
    }
    let bornAt: Instant | undefined;
    const releaser: InstanceReleaser = {
      ...world.releaser,
      describe: async (...asked) => {
        if (isSilent === true) silence(world);
        const state = await world.releaser.describe(...asked);
        if (state.kind === "Absent") return state;
        const status = (world.departureOf("n1")?.status ?? {}) as { startedAt?: string };
        bornAt ??= plus(instant(Date.parse(status.startedAt ?? "")), seconds(born));
        if (ahead === undefined) return { ...state, bornAt };
        const asOf = plus(world.clock.now(), seconds(ahead));
        return { ...state, bornAt: plus(bornAt, seconds(ahead)), asOf };
      },
    };
    start(world, () => releaser);
    await world.passUntil(() => world.statusOf("n1").phase === "Ended", minutes(10));
    return world;
  }

  function silence(world: ModelWorld): void {
    const patchType = "application/strategic-merge-patch+json";
    const body = { status: { conditions: [{ type: "Ready", status: "Unknown" }] } };
    world.api.handle({ method: "PATCH", path: `${nodes}/n1/status`, patchType, body });
  }

  it.each([undefined, -300, 300])(
    "does not release one born after the departure's start, which has the old one's name (clock of the cloud ahead by %s s)",
    async (ahead) => {
      const world = await releaseOf({ born: 1, isSilent: true, ...(ahead && { ahead }) });
      expect(world.released).toEqual([]);
      expect(world.statusOf("n1")).toMatchObject({ outcome: "Planned", reason: "Released" });
      expect(world.get(`${nodes}/n1`)).toBeUndefined();
    },
  );

  it("does not take the old one for gone while its kubelet reports", async () => {
    const world = await releaseOf({ born: 1 });
    expect(world.released).toEqual([]);
    expect(world.get(`${nodes}/n1`)).toBeDefined();
    expect(world.statusOf("n1")).toMatchObject({
      ...{ outcome: "Failed", reason: "ReleaseFailed" },
      message: expect.stringContaining("its kubelet still reports"),
    });
  });

  it("releases one born before its Node, although a slow clock dates the start before both", async () => {
    const world = await releaseOf({ born: 60, startedAt: "2026-11-19T23:00:00Z" });
    expect(world.released).toHaveLength(1);
  });

  it.each([undefined, -300, 300])(
    "releases one born before (clock of the cloud ahead by %s s)",
    async (ahead) => {
      const world = await releaseOf({ born: -60, ...(ahead && { ahead }) });
      expect(world.released).toHaveLength(1);
    },
  );
});

describe("a drained node whose release the API server does not let begin", () => {
  /** `answer` is that to every request from the end of the drain on, or no answer. */
  async function from(
    answer: () => KubeAnswer | "Lost" | undefined,
  ): Promise<{ readonly world: ModelWorld; readonly drained: () => boolean }> {
    const world = await fleet();
    const send = world.watched.send.bind(world.watched);
    let isDrained = false;
    world.watched.send = async (request) => {
      isDrained ||= world.statusOf("n1").phase === "Releasing";
      const found = isDrained ? answer() : undefined;
      if (found === "Lost") throw new LastcallError("API_UNREACHABLE", "Cannot connect");
      if (found !== undefined && request.path.startsWith("/api/v1/pods")) return found;
      return send(request);
    };
    return { world, drained: () => isDrained };
  }

  it("is released after an hour without an API server that refuses some more when it is back", async () => {
    let answer: KubeAnswer | "Lost" | undefined = "Lost";
    const { world, drained } = await from(() => answer);
    start(world, () => world.releaser);
    await world.passUntil(drained, minutes(10));
    await world.pass(hours(1));
    answer = overloaded;
    await world.pass(minutes(1));
    answer = undefined;
    await world.pass(minutes(5));
    expect(world.statusOf("n1")).toMatchObject({ phase: "Ended", outcome: "Planned" });
  });

  it("is free after instance.awaitMachine if its pods may not be listed", async () => {
    const { world, drained } = await from(() => overloaded);
    start(world, () => world.releaser);
    await world.passUntil(drained, minutes(10));
    await world.pass(minutes(15));
    const message = expect.stringContaining("etcdserver: request timed out");
    expect(world.statusOf("n1")).toMatchObject({ outcome: "Failed", message });
  });
});

const overloaded: KubeAnswer = {
  status: 500,
  body: { kind: "Status", status: "Failure", message: "etcdserver: request timed out" },
};

it.each([
  ["its cloud does not answer", "CLOUD_UNREACHABLE"],
  ["the API server refuses its last look", "API_REFUSED"],
])(
  "a release is given up after awaitMachine, however often the leader changes: %s",
  async (_, code) => {
    const world = await fleet();
    const error = new LastcallError(code as "CLOUD_UNREACHABLE", "Cannot release: no", {
      retryable: true,
    });
    const releaser = { ...world.releaser, release: () => Promise.reject(error) };
    let led = 0;
    while (world.statusOf("n1").phase !== "Ended" && led < 10) {
      start(world, () => releaser);
      await world.pass(minutes(4));
      led += 1;
      for (const { stop, done } of running.splice(0)) {
        stop.abort();
        await done;
      }
      await world.pass(minutes(30));
    }
    expect(world.statusOf("n1")).toMatchObject({ outcome: "Failed", reason: "ReleaseFailed" });
    expect(led).toBeLessThanOrEqual(5);
    expect(world.marksOf("n1")).toEqual([]);
  },
);
