import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../src/contracts/kube-api.ts";
import type { Departure, DrainCounts } from "../../src/core/departure/departure.ts";
import { plus, seconds } from "../../src/core/time/time.ts";
import { KubeDepartureStore } from "../../src/kube/departure-store.ts";
import { aDeparture, aNode, at } from "../core/fleet-builder.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";
import { ScriptedApi } from "../support/scripted-api.ts";

const noticedAt = at("2026-11-20T12:00:00Z");
const order = {
  name: "n1-01234567",
  node: { name: "n1", uid: "0123456789abcdef" },
  cause: "SpotInterruption",
  source: "aws/queue/spot-interruption/event-1",
  reason: "Noticed",
  message: "n1 leaves because the cloud interrupts it.",
} as const;

/** The first request of the store, answered with a conflict. */
function sentBy(write: (store: KubeDepartureStore) => Promise<unknown>): Promise<KubeRequest> {
  return new Promise((resolve, reject) => {
    const send = async (request: KubeRequest) => {
      resolve(request);
      return { status: 409, body: { reason: "Conflict" } };
    };
    const watch = () => {
      throw new Error("nothing is watched");
    };
    write(new KubeDepartureStore({ send, watch })).catch(reject);
  });
}

describe("a departure", () => {
  const departure = aDeparture(aNode("n1"));
  const calls: readonly [string, (store: KubeDepartureStore) => Promise<unknown>][] = [
    ["read", (store) => store.read(departure.name)],
    ["recorded", (store) => store.record(departure, { status: () => departure.status })],
    ["removed", (store) => store.remove(departure)],
    ["given its finalizer", (store) => store.finalize(departure, "Add")],
  ];
  const answering = (body: unknown) =>
    new KubeDepartureStore(new ScriptedApi(() => ({ status: 404, body })));

  it.each(calls)("that no longer exists when it is %s is gone", async (_, call) => {
    const missing = { kind: "Status", code: 404, reason: "NotFound", message: "not found" };
    expect(await call(answering(missing))).toEqual({ kind: "Gone" });
  });

  it.each(calls)("is not gone if a proxy answers 404 when it is %s", async (_, call) => {
    await expect(call(answering("404 page not found\n"))).rejects.toMatchObject({
      code: "API_ANSWER_INVALID",
      retryable: true,
    });
  });
});

describe("a 409", () => {
  const departure = aDeparture(aNode("n1"));
  const denied = 'admission webhook "guard.example.com" denied the request: not now';
  const conflict = { kind: "Status", code: 409, reason: "Conflict", message: "it was modified" };
  const answering = (body: unknown) =>
    new KubeDepartureStore(new ScriptedApi(() => ({ status: 409, body })));
  const writes: readonly [string, (store: KubeDepartureStore) => Promise<unknown>][] = [
    ["a status", (store) => store.record(departure, { status: () => departure.status })],
    ["a finalizer", (store) => store.finalize(departure, "Add")],
    ["a notice", (store) => store.notice(departure, { noticedAt, source: "test" })],
    ["a deletion", (store) => store.remove(departure)],
  ];

  it.each(writes)("to %s is a conflict, in the server's words", async (_, write) => {
    const told = { kind: "Conflict", message: "it was modified" };
    expect(await write(answering(conflict))).toEqual(told);
  });

  it.each(writes)("of a webhook to %s is a refusal, in its words", async (_, write) => {
    const refused = write(answering({ ...conflict, message: denied }));
    await expect(refused).rejects.toMatchObject({ code: "API_REFUSED", retryable: false });
    await expect(refused).rejects.toThrow("guard.example.com");
  });

  it("to a creation is a conflict only if the name is taken", async () => {
    const taken = { ...conflict, reason: "AlreadyExists" };
    expect(await answering(taken).create(order)).toMatchObject({ kind: "Conflict" });
    const refused = answering({ ...taken, message: denied }).create(order);
    await expect(refused).rejects.toMatchObject({ code: "API_REFUSED" });
  });
});

describe("the conditions of a departure", () => {
  const path = `/apis/lastcall.dev/v1alpha1/departures/${order.name}`;

  it("are there before its status is written, and follow it afterwards", async () => {
    const api = await modelClusterApi(new ManualClock());
    const store = new KubeDepartureStore(api);
    const trueOnes = async () => {
      const { body } = await api.send({ method: "GET", path });
      const { conditions = [] } = (body as { status: { conditions?: { status: string }[] } })
        .status;
      expect(conditions).toHaveLength(6);
      return conditions.filter(({ status }) => status === "True");
    };
    const made = await store.create(order);
    if (made.kind !== "Done") throw new Error(made.kind);
    expect(await trueOnes()).toMatchObject([{ type: "Scheduled", reason: "Scheduled" }]);
    const timeline = [{ at: noticedAt, step: "Held", result: "Blocked: no window is open" }];
    const held = { phase: "Held", reason: "OutsideWindow", timeline } as const;
    await store.record(made.departure, { status: () => held });
    expect(await trueOnes()).toMatchObject([{ type: "Held", reason: "OutsideWindow" }]);
  });
});

it("the launch time of its machine is kept as it was written", async () => {
  const store = new KubeDepartureStore(await modelClusterApi(new ManualClock()));
  const launchedAt = plus(noticedAt, seconds(-90));
  const made = await store.create({ ...order, launchedAt });
  expect(made).toMatchObject({ departure: { launchedAt } });
  if (made.kind !== "Done") return;
  const moved = await store.move(made.departure, { departAt: noticedAt });
  expect(moved).toMatchObject({ departure: { launchedAt, departAt: noticedAt } });
  if (moved.kind !== "Done") return;
  const known = await store.move(moved.departure, { departAt: noticedAt, launchedAt: noticedAt });
  expect(known).toMatchObject({ departure: { launchedAt: noticedAt } });
});

it("a field of the drain that a status no longer has is removed with it", async () => {
  const store = new KubeDepartureStore(await modelClusterApi(new ManualClock()));
  const made = await store.create(order);
  if (made.kind !== "Done") throw new Error("it was not created");
  const none = { evicted: 1, forced: 0, waiting: 2, blocked: 0, cut: 0 };
  const counts: DrainCounts = { total: 3, left: 2, ...none };
  const record = async (departure: Departure, drain: DrainCounts) => {
    const status = { ...departure.status, phase: "Draining", drain } as const;
    const written = await store.record(departure, { status: () => status });
    if (written.kind !== "Done") throw new Error("it was not recorded");
    return written.departure;
  };
  const before = await record(made.departure, { ...counts, activeSeconds: 90 });
  expect(before.status.drain).toEqual({ ...counts, activeSeconds: 90 });
  const without = { ...counts, activeSeconds: undefined };
  expect((await record(before, without)).status.drain).toEqual(counts);
});

describe("the finalizer of a departure", () => {
  const departure = { ...aDeparture(aNode("n1")), finalizers: ["example.com/audit"] };
  const kept = { ...departure, finalizers: ["example.com/audit", "lastcall.dev/departure"] };

  it.each([
    ["is added", departure, "Add", ["example.com/audit", "lastcall.dev/departure"]],
    ["is added once", kept, "Add", ["example.com/audit", "lastcall.dev/departure"]],
    ["is removed", kept, "Remove", ["example.com/audit"]],
  ] as const)("%s, and others stay", async (_, one, change, finalizers) => {
    const { uid, resourceVersion } = departure;
    expect(await sentBy((store) => store.finalize(one, change))).toMatchObject({
      method: "PATCH",
      body: { metadata: { uid, resourceVersion, finalizers } },
    });
  });

  it("comes with the Departure of a notice, and not with a planned one", async () => {
    const noticed = await sentBy((store) => store.create({ ...order, noticedAt }));
    expect(noticed.body).toMatchObject({ metadata: { finalizers: ["lastcall.dev/departure"] } });
    const planned = await sentBy((store) => store.create({ ...order, cause: "Planned" }));
    expect(planned.body).not.toHaveProperty("metadata.finalizers");
  });
});

describe("when many requests wait, a write", () => {
  it("that creates a departure at a notice goes first, as the cordon waits for it", async () => {
    const request = await sentBy((store) => store.create({ ...order, noticedAt }));
    expect(request).toMatchObject({ method: "POST", urgency: "First" });
  });

  it("that turns a departure into a forced one goes first, too", async () => {
    const word = { noticedAt, deadlineAt: plus(noticedAt, seconds(120)), source: order.source };
    const request = await sentBy((store) => store.notice(aDeparture(aNode("n1")), word));
    expect(request).toMatchObject({ method: "PATCH", urgency: "First" });
  });

  it("that plans a departure goes last", async () => {
    const request = await sentBy((store) => store.create({ ...order, cause: "Planned" }));
    expect(request).toMatchObject({ method: "POST", urgency: "Later" });
  });

  it("of a status goes last until it becomes urgent, and has the status of the time it is sent", async () => {
    const departure = aDeparture(aNode("n1"));
    const hurry = new AbortController().signal;
    let message = "as it was made";
    const status = () => ({ ...departure.status, message });
    const record = await sentBy((store) => store.record(departure, { status, hurry }));
    expect(record).toMatchObject({ method: "PATCH", urgency: "Later", hurry });
    message = "as it goes out";
    expect(record.bodyAtTurn?.()).toMatchObject({ status: { message: "as it goes out" } });
  });
});
