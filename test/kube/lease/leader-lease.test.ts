import { afterEach, describe, expect, it } from "vitest";
import type { LeaderDuty } from "../../../src/contracts/leadership.ts";
import { seededRng } from "../../../src/core/chance/chance.ts";
import { hours, minutes, seconds } from "../../../src/core/time/time.ts";
import type { LastcallError } from "../../../src/errors.ts";
import { LeaderLease, type LeaderLeaseOptions } from "../../../src/kube/lease/leader-lease.ts";
import { type LeaseClient, LeaseServer } from "../../support/lease-server.ts";
import { ManualClock, settle } from "../../support/manual-clock.ts";

const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Leads until the signal aborts. */
function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });
}

class World {
  readonly server = new LeaseServer();
  readonly clock = new ManualClock();
  /** The answer that new replicas get instead of the server's. */
  refuse: LeaseClient["refuse"] = () => undefined;

  replica(identity: string, more: Partial<LeaderLeaseOptions & LeaderDuty> = {}) {
    const client = this.server.client();
    client.refuse = this.refuse;
    const stop = new AbortController();
    const log: string[] = [];
    const lease = new LeaderLease({
      api: client,
      clock: this.clock,
      rng: seededRng(identity.length),
      namespace: "lastcall-system",
      name: "lastcall",
      identity,
      ...more,
    });
    const duty: LeaderDuty = {
      async onLeading(signal) {
        log.push("leads");
        await untilAborted(signal);
        log.push(signal.reason?.code === "LEASE_LOST" ? "lost" : "stopped");
      },
      onHolder: (holder) => log.push(`sees ${holder ?? "nobody"}`),
      ...more,
    };
    const run = lease.run(duty, stop.signal);
    run.catch(() => {});
    closing.push(async () => {
      stop.abort();
      // A last request may still be waiting for the clock.
      await this.clock.advance(minutes(1));
    });
    return { client, stop, log, lease, run };
  }
}

describe("the lead", () => {
  it("goes to the first replica, which writes a Lease as other clients read it", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    expect(a.lease.isLeader()).toBe(true);
    expect(world.server.lease).toMatchObject({
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: "lastcall", namespace: "lastcall-system" },
      spec: {
        holderIdentity: "a",
        leaseDurationSeconds: 40,
        acquireTime: "2026-11-20T00:00:00.000000Z",
        renewTime: "2026-11-20T00:00:00.000000Z",
        leaseTransitions: 0,
      },
    });
  });

  it("is renewed every 25 s, with at most 150 requests an hour, and five for a standby", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    const b = world.replica("b");
    await settle();
    const before = a.client.sent.length;
    await world.clock.advance(hours(1));
    expect(a.client.sent.length - before).toBe(3600 / 25);
    expect(a.client.sent.length + a.client.watchesOpened).toBeLessThanOrEqual(150);
    expect(b.client.sent.length + b.client.watchesOpened).toBeLessThanOrEqual(5);
    expect(world.server.lease?.spec).toMatchObject({
      acquireTime: "2026-11-20T00:00:00.000000Z",
      leaseTransitions: 0,
    });
    expect(b.log).toEqual(["sees a"]);
  });

  it("is taken over at once after a clean stop", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    const b = world.replica("b");
    await settle();
    expect(b.lease.isLeader()).toBe(false);
    a.stop.abort();
    await a.run;
    await settle();
    expect(a.log).toEqual(["sees nobody", "sees a", "leads", "stopped", "sees nobody", "sees b"]);
    expect(b.lease.isLeader()).toBe(true);
    expect(world.server.lease?.spec).toMatchObject({ holderIdentity: "b", leaseTransitions: 1 });
  });

  it("is held until the duty has ended after a stop", async () => {
    const world = new World();
    const finish = Promise.withResolvers<void>();
    const a = world.replica("a", { onLeading: () => finish.promise });
    await settle();
    const b = world.replica("b");
    a.stop.abort();
    await world.clock.advance(minutes(3));
    expect(world.server.holder).toBe("a");
    expect(b.lease.isLeader()).toBe(false);
    finish.resolve();
    await a.run;
    await settle();
    expect(b.lease.isLeader()).toBe(true);
  });

  it("is given up when the duty ends on its own, and an error is passed on", async () => {
    const world = new World();
    const fault = new Error("duty broke");
    const a = world.replica("a", { onLeading: () => Promise.reject(fault) });
    await expect(a.run).rejects.toBe(fault);
    expect(world.server.holder).toBe("");
    const b = world.replica("b", { onLeading: async () => {} });
    await b.run;
    expect(world.server.holder).toBe("");
  });
});

describe("a holder of the Lease", () => {
  it("that is cut off stops leading 35 s after its last renewal, and is succeeded after 40 s", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    const b = world.replica("b");
    await world.clock.advance(seconds(25));
    a.client.cut();
    await world.clock.advance(seconds(35) - 1);
    expect(a.lease.isLeader()).toBe(true);
    await world.clock.advance(1);
    expect(a.lease.isLeader()).toBe(false);
    expect(a.log.at(-1)).toBe("lost");
    await world.clock.advance(seconds(5) - 1);
    expect(b.lease.isLeader()).toBe(false);
    await world.clock.advance(1);
    expect(b.lease.isLeader()).toBe(true);
  });

  it("counts its time from when a renewal was sent, not from when it was answered", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    a.client.answersTake = () => world.clock.sleep(seconds(8));
    await world.clock.advance(seconds(25 + 8));
    expect(a.lease.isLeader()).toBe(true);
    a.client.cut();
    await world.clock.advance(seconds(35 - 8) - 1);
    expect(a.lease.isLeader()).toBe(true);
    await world.clock.advance(1);
    expect(a.lease.isLeader()).toBe(false);
  });

  it("is not the leader after a pause of its process, even before a timer has run", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    world.clock.freezeFor(seconds(36));
    expect(a.lease.isLeader()).toBe(false);
    // The Lease has the same version, so nobody else can have led meanwhile: the renewal is valid.
    await world.clock.advance(0);
    expect(a.lease.isLeader()).toBe(true);
    a.client.cut();
    world.clock.freezeFor(seconds(36));
    await world.clock.advance(0);
    expect(a.log.at(-1)).toBe("lost");
  });

  it("does not retry in a hot loop if its writes arrive but the responses are lost", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    a.client.line = "AnswersLost";
    await world.clock.advance(minutes(2));
    expect(a.lease.isLeader()).toBe(false);
    expect(a.client.sent.length).toBeLessThan(100);
  });

  it("leads again when its connection recovers and nobody has taken the Lease", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    a.client.cut();
    await world.clock.advance(minutes(2));
    expect(a.lease.isLeader()).toBe(false);
    a.client.line = "Up";
    await world.clock.advance(seconds(5));
    expect(a.lease.isLeader()).toBe(true);
    expect(a.log.filter((entry) => entry === "leads")).toHaveLength(2);
  });

  it("is judged by the changes that a standby sees, not by the times in the Lease", async () => {
    const world = new World();
    const a = world.replica("a", { renewEveryMs: seconds(20) });
    await settle();
    const b = world.replica("b");
    await settle();
    // The holder's clock is an hour slow, which shows in its renewals; they still arrive in time.
    for (let round = 0; round < 20; round += 1) {
      await world.clock.advance(seconds(10));
      const spec = world.server.lease?.spec as Record<string, unknown>;
      spec.renewTime = "2026-11-19T23:00:00.000000Z";
      expect(b.lease.isLeader()).toBe(false);
    }
    expect(a.lease.isLeader()).toBe(true);
  });

  it("is succeeded at once if it is known to have crashed, which is checked once", async () => {
    const world = new World();
    const a = world.replica("host-1_old");
    await settle();
    a.client.cut();
    const asked: string[] = [];
    const holderIsDead = (identity: string) => asked.push(identity) > 0;
    const b = world.replica("host-1_new", { holderIsDead });
    await settle();
    expect(b.lease.isLeader()).toBe(true);
    expect(asked).toEqual(["host-1_old"]);
  });

  it("is not succeeded if it renews after it was taken for dead", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    const b = world.replica("b", { holderIsDead: () => true });
    b.client.refuse = (request) => {
      if (request.method !== "PUT") return undefined;
      b.client.refuse = () => undefined;
      // The holder's own renewal arrives just before the standby's write.
      world.server.overwrite({ label: "renewed" });
      const body = { kind: "Status", code: 409, reason: "Conflict", message: "modified" };
      return { status: 409, body };
    };
    await settle();
    expect(b.lease.isLeader()).toBe(false);
    await world.clock.advance(minutes(5));
    expect(b.lease.isLeader()).toBe(false);
    expect(a.lease.isLeader()).toBe(true);
  });
});

describe("a renewal that is refused with 409", () => {
  it.each([
    ["by a webhook", 'admission webhook "guard.example.com" denied the request: not now'],
    ["by something else, although nobody has written", "not this object"],
  ])("%s is told in the server's words", async (_, message) => {
    const world = new World();
    const errors: LastcallError[] = [];
    const a = world.replica("a", { onError: (error) => errors.push(error) });
    await settle();
    a.client.refuse = ({ method }) =>
      method === "PUT"
        ? { status: 409, body: { kind: "Status", code: 409, reason: "Conflict", message } }
        : undefined;
    await world.clock.advance(seconds(30));
    expect(errors[0]?.message).toContain(message);
  });
});

describe("the lead is lost", () => {
  it("at once when the Lease is deleted, and free to be taken at once", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    const b = world.replica("b");
    await settle();
    world.server.delete();
    await settle();
    expect(a.log).toContain("lost");
    expect([a.lease.isLeader(), b.lease.isLeader()].filter(Boolean)).toHaveLength(1);
  });

  it("at once when another holder is seen", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    world.server.overwrite({ holder: "z", transitions: 1 });
    await settle();
    expect(a.lease.isLeader()).toBe(false);
    expect(a.log.slice(-2)).toEqual(["sees z", "lost"]);
  });

  it("by a conflict at the next renewal if the watch is dead", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    world.server.clients.splice(0);
    world.server.overwrite({ holder: "z", transitions: 1 });
    await world.clock.advance(seconds(25));
    expect(a.lease.isLeader()).toBe(false);
    expect(a.log).toContain("lost");
  });

  it("neither by a renewal whose response was lost nor by a new label on the Lease", async () => {
    const world = new World();
    const a = world.replica("a");
    await settle();
    a.client.line = "AnswersLost";
    await world.clock.advance(seconds(26));
    a.client.line = "Up";
    await world.clock.advance(seconds(10));
    world.server.overwrite({ label: "by-hand" });
    await world.clock.advance(minutes(5));
    expect(a.log).toEqual(["sees nobody", "sees a", "leads"]);
    expect(a.lease.isLeader()).toBe(true);
    expect(world.server.lease?.metadata?.labels).toEqual({ label: "by-hand" });
  });

  it("not by a late watch event from before this term", async () => {
    const world = new World();
    world.server.handle({
      method: "POST",
      path: "/apis/coordination.k8s.io/v1/namespaces/lastcall-system/leases",
      body: { metadata: { name: "lastcall" }, spec: { holderIdentity: "", leaseTransitions: 3 } },
    });
    const a = world.replica("a");
    await settle();
    const old = { holderIdentity: "z", leaseTransitions: 3 };
    const metadata = { name: "lastcall", uid: "lease-1", resourceVersion: "1" };
    a.client.told({ type: "MODIFIED", object: { metadata, spec: old } });
    await settle();
    expect(a.lease.isLeader()).toBe(true);
    expect(world.server.lease?.spec).toMatchObject({ leaseTransitions: 4 });
  });
});

describe("a Lease that can never be acquired", () => {
  const forbidden = { status: 403, body: { kind: "Status", code: 403, message: "forbidden" } };
  const absent = { status: 404, body: { kind: "Status", code: 404, message: "no such namespace" } };

  it.each([
    ["list", "GET", forbidden, "RIGHT_MISSING"],
    ["create", "POST", forbidden, "RIGHT_MISSING"],
    ["create", "POST", absent, "NOT_FOUND"],
  ] as const)("because %s (%s) is refused ends the run", async (verb, method, answer, code) => {
    const world = new World();
    world.refuse = (request) => (request.method === method ? answer : undefined);
    const a = world.replica("a");
    await expect(a.run).rejects.toMatchObject({
      code,
      message: expect.stringMatching(`Cannot ${verb} leases.coordination.k8s.io in namespace`),
    });
  });
});

describe("three replicas", () => {
  const seeds = Array.from({ length: 15 }, (_, at) => at + 1);

  it.each(seeds)(
    "never lead two at a time, whatever connections are cut (seed %i)",
    async (seed) => {
      const rng = seededRng(seed);
      const world = new World();
      const replicas = ["a", "bb", "ccc"].map((identity) => world.replica(identity));
      let ledMs = 0;
      for (let elapsedMs = 0; elapsedMs < minutes(20); elapsedMs += 500) {
        await world.clock.advance(500);
        const leaders = replicas.filter((replica) => replica.lease.isLeader());
        expect(leaders.length, `after ${elapsedMs} ms`).toBeLessThanOrEqual(1);
        ledMs += leaders.length * 500;
        if (rng() > 0.02) continue;
        const client = world.server.clients[Math.floor(rng() * 3)];
        if (client === undefined) continue;
        const chance = rng();
        if (chance < 0.4) client.cut();
        else if (chance < 0.5) client.line = "AnswersLost";
        else client.line = "Up";
      }
      expect(ledMs).toBeGreaterThan(minutes(5));
    },
  );
});
