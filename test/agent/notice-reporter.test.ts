import { beforeEach, describe, expect, it } from "vitest";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import type { KubeAnswer, KubeObject, KubeRequest } from "../../src/contracts/kube-api.ts";
import type { MachineNotice } from "../../src/core/notice/notice.ts";
import { formatInstant, plus, seconds } from "../../src/core/time/time.ts";
import type { ModelApi } from "../../src/sim/api/model-api.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";

const departures = "/apis/lastcall.dev/v1alpha1/departures";
const node = { name: "n1", uid: "0b1f7a3e-7f0e", bootID: "boot-1" };
const first = "n1-0b1f7a3e";
const never = new AbortController().signal;
const clock = new ManualClock();
const nowAt = clock.now();

let api: ModelApi;
let sent: KubeRequest[];
let reporter: NoticeReporter;
let warned: Record<string, unknown>[];

beforeEach(async () => {
  api = await modelClusterApi(clock);
  sent = [];
  warned = [];
  const counting = {
    send: (request: KubeRequest) => {
      sent.push(request);
      return api.send(request);
    },
  };
  const warn = (event: string, fields?: object) => void warned.push({ event, ...fields });
  reporter = new NoticeReporter({ api: counting, identify: async () => node, log: { warn } });
});

const spot: MachineNotice = {
  cause: "SpotInterruption",
  deadlineAt: plus(nowAt, seconds(120)),
  noticedAt: nowAt,
  source: "aws/spot-instance-action",
  eventIds: ["spot-terminate-1"],
};
const rebalance: MachineNotice = {
  cause: "RebalanceRecommendation",
  noticedAt: nowAt,
  source: "aws/rebalance",
  eventIds: ["rebalance-1"],
};

async function put(name: string, spec: object, status?: object): Promise<void> {
  const body = {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name },
    spec: { node, ...spec },
  };
  const made = await api.send({ method: "POST", path: departures, body });
  expect(made.status).toBe(201);
  if (status !== undefined) await say(name, status);
}

async function say(name: string, status: object): Promise<void> {
  const patchType = "application/merge-patch+json";
  const path = `${departures}/${name}/status`;
  const told = await api.send({ method: "PATCH", path, patchType, body: { status } });
  expect(told.status).toBe(200);
}

async function read(name: string): Promise<KubeObject & { spec: Record<string, unknown> }> {
  const answer = await api.send({ method: "GET", path: `${departures}/${name}` });
  expect(answer.status).toBe(200);
  return answer.body as KubeObject & { spec: Record<string, unknown> };
}

async function names(): Promise<readonly (string | undefined)[]> {
  const { body } = await api.send({ method: "GET", path: departures });
  return (body as { items: KubeObject[] }).items.map((one) => one.metadata?.name);
}

describe("a notice for a node without a departure", () => {
  it("creates one with a single request and everything that the controller needs", async () => {
    expect(await reporter.report(spot, never)).toEqual({ kind: "Created", name: first });
    expect(sent.map((one) => one.method)).toEqual(["POST"]);
    const made = await read(first);
    expect(made.spec).toMatchObject({
      node,
      cause: "SpotInterruption",
      deadlineAt: formatInstant(plus(nowAt, seconds(120))),
      noticedAt: formatInstant(nowAt),
      source: "agent/aws/spot-instance-action",
    });
    expect(made.metadata?.annotations).toEqual({ "lastcall.dev/notice": "spot-terminate-1" });
  });

  it.each(["POST", "PATCH", "GET"])(
    "is retried if something other than the API server answers a %s with 200",
    async (method) => {
      if (method !== "POST") {
        const departAt = formatInstant(plus(nowAt, seconds(3600)));
        await put(first, { cause: "Planned", departAt });
      }
      const foreign: KubeAnswer = { status: 200, body: { message: "log in" } };
      const proxied = {
        send: (request: KubeRequest) =>
          request.method === method ? Promise.resolve(foreign) : api.send(request),
      };
      const log = { warn: () => undefined };
      const other = new NoticeReporter({ api: proxied, identify: async () => node, log });
      await expect(other.report(spot, never)).rejects.toMatchObject({
        code: "API_ANSWER_INVALID",
        retryable: true,
      });
    },
  );

  it("creates no second one when it is reported again after a lost response or a restart", async () => {
    await reporter.report(spot, never);
    expect(await reporter.report(spot, never)).toEqual({ kind: "Known", name: first });
    expect(await names()).toEqual([first]);
  });
});

describe("a notice for a node with a planned departure", () => {
  it("turns it into a forced one, with the cloud's deadline instead of the planned one", async () => {
    const overdue = formatInstant(plus(nowAt, seconds(-3600)));
    await put(first, { cause: "Planned", departAt: overdue, deadlineAt: overdue, policy: "spot" });
    expect(await reporter.report(spot, never)).toEqual({ kind: "Tightened", name: first });
    expect((await read(first)).spec).toMatchObject({
      cause: "SpotInterruption",
      policy: "spot",
      noticedAt: formatInstant(nowAt),
      deadlineAt: formatInstant(plus(nowAt, seconds(120))),
      source: "agent/aws/spot-instance-action",
    });
    expect(await names()).toEqual([first]);
  });

  it("removes the planned deadline if the cloud names none", async () => {
    const laterAt = formatInstant(plus(nowAt, seconds(3600)));
    await put(first, { cause: "Planned", deadlineAt: laterAt });
    const hook: MachineNotice = { ...rebalance, cause: "LifecycleHook" };
    expect(await reporter.report(hook, never)).toEqual({ kind: "Tightened", name: first });
    const { spec } = await read(first);
    expect(spec).not.toHaveProperty("deadlineAt");
    expect(spec.cause).toBe("LifecycleHook");
  });

  it.each([
    ["DrainDone", "LifecycleHook", "Known"],
    ["DrainDone", "NodeShutdown", "Known"],
    ["AwaitingMachine", "LifecycleHook", "Known"],
    // The cloud takes the machine, and the planned release may still fail.
    ["DrainDone", "SpotInterruption", "Tightened"],
    ["AwaitingMachine", "SpotInterruption", "Tightened"],
  ] as const)(
    "while it is being released (%s), treats a %s as the release itself or as a notice: %s",
    async (reason, cause, kind) => {
      await put(first, { cause: "Planned", policy: "spot" }, { phase: "Releasing", reason });
      expect(await reporter.report({ ...spot, cause }, never)).toEqual({ kind, name: first });
      expect((await read(first)).spec.cause).toBe(kind === "Known" ? "Planned" : cause);
    },
  );

  it("creates another one if a policy may ignore the notice", async () => {
    await put(first, { cause: "Planned", departAt: formatInstant(plus(nowAt, seconds(3600))) });
    const created = { kind: "Created", name: `${first}-2` };
    expect(await reporter.report(rebalance, never)).toEqual(created);
    expect((await read(first)).spec).not.toHaveProperty("noticedAt");
  });

  it("creates another one for a recommendation if the planned one has started", async () => {
    await put(first, { cause: "Planned" }, { phase: "Draining" });
    const created = { kind: "Created", name: `${first}-2` };
    expect(await reporter.report(rebalance, never)).toEqual(created);
    expect((await read(first)).spec).not.toHaveProperty("noticedAt");
    // A notice that no policy may ignore goes to the departure that is draining.
    await say(`${first}-2`, { phase: "Ended", outcome: "Cancelled", reason: "NoticeIgnored" });
    expect(await reporter.report(spot, never)).toEqual({ kind: "Tightened", name: first });
  });

  it("keeps a person's deadline if it is earlier", async () => {
    const earlierAt = formatInstant(plus(nowAt, seconds(30)));
    await put(first, { cause: "Manual", deadlineAt: earlierAt });
    await reporter.report(spot, never);
    const wanted = { deadlineAt: earlierAt, cause: "SpotInterruption" };
    expect((await read(first)).spec).toMatchObject(wanted);
  });

  it("keeps a person's deadline and cause if the cloud names no deadline", async () => {
    const wantedAt = formatInstant(plus(nowAt, seconds(3600)));
    await put(first, { cause: "Manual", deadlineAt: wantedAt });
    const hook: MachineNotice = { ...rebalance, cause: "LifecycleHook", eventIds: ["hook-1"] };
    expect(await reporter.report(hook, never)).toEqual({ kind: "Tightened", name: first });
    const persons = { cause: "Manual", deadlineAt: wantedAt, noticedAt: formatInstant(nowAt) };
    expect((await read(first)).spec).toMatchObject(persons);
    expect(await reporter.report(hook, never)).toEqual({ kind: "Known", name: first });
    // From now on the cause is the cloud's, even if its deadline is later.
    const late = { ...spot, deadlineAt: plus(nowAt, seconds(7200)) };
    expect(await reporter.report(late, never)).toMatchObject({ kind: "Tightened", name: first });
    const clouds = { cause: "SpotInterruption", deadlineAt: wantedAt };
    expect((await read(first)).spec).toMatchObject(clouds);
  });

  it("replaces the cause of a person's departure without a deadline", async () => {
    await put(first, { cause: "Manual" });
    const hook: MachineNotice = { ...rebalance, cause: "LifecycleHook" };
    await reporter.report(hook, never);
    expect((await read(first)).spec.cause).toBe("LifecycleHook");
  });
});

describe("a second notice for the same node", () => {
  it("becomes the cause if its deadline is earlier", async () => {
    await reporter.report(rebalance, never);
    const both = { ...spot, eventIds: ["rebalance-1", "spot-terminate-1"] };
    expect(await reporter.report(both, never)).toEqual({ kind: "Tightened", name: first });
    const after = await read(first);
    expect(after.spec).toMatchObject({
      cause: "SpotInterruption",
      deadlineAt: formatInstant(plus(nowAt, seconds(120))),
    });
    expect(after.metadata?.annotations?.["lastcall.dev/notice"]).toBe(
      "rebalance-1,spot-terminate-1",
    );
  });

  it("replaces a cause that a policy may ignore, with or without a deadline", async () => {
    await reporter.report(rebalance, never);
    const hook: MachineNotice = { ...rebalance, cause: "LifecycleHook", source: "aws/hook" };
    expect(await reporter.report(hook, never)).toEqual({ kind: "Tightened", name: first });
    expect((await read(first)).spec).toMatchObject({
      cause: "LifecycleHook",
      source: "agent/aws/hook",
    });
  });

  it("keeps the cause when a notice follows that a policy may ignore, however early it is", async () => {
    await reporter.report(spot, never);
    const nearer = plus(nowAt, seconds(60));
    const maintenance: MachineNotice = {
      ...spot,
      cause: "ScheduledMaintenance",
      deadlineAt: nearer,
    };
    await reporter.report(maintenance, never);
    expect((await read(first)).spec).toMatchObject({
      cause: "SpotInterruption",
      deadlineAt: formatInstant(nearer),
    });
  });

  it("never moves the deadline back", async () => {
    await reporter.report(spot, never);
    const later = { ...spot, deadlineAt: plus(nowAt, seconds(300)), eventIds: ["spot-stop-2"] };
    // The first is given up ten minutes after its deadline; the second is then reported again.
    const outlivedAt = plus(nowAt, seconds(120 + 600));
    expect(await reporter.report(later, never)).toMatchObject({ kind: "Tightened", outlivedAt });
    expect((await read(first)).spec).toMatchObject({
      deadlineAt: formatInstant(plus(nowAt, seconds(120))),
    });
  });

  it("joins the departure that is draining rather than the planned one", async () => {
    await put(first, { cause: "Planned" });
    await reporter.report(rebalance, never);
    expect(await reporter.report(spot, never)).toEqual({ kind: "Tightened", name: `${first}-2` });
    expect((await read(first)).spec).not.toHaveProperty("noticedAt");
  });
});

describe("a notice for a node whose departure has ended", () => {
  const ended = { phase: "Ended", outcome: "Cancelled", reason: "CancelledByPerson" };

  it("creates the departure with the next number, and leaves the old one as it is", async () => {
    await put(first, { cause: "Planned" }, ended);
    expect(await reporter.report(spot, never)).toEqual({ kind: "Created", name: `${first}-2` });
    await say(`${first}-2`, ended);
    const other = { ...spot, eventIds: ["spot-terminate-2"] };
    expect(await reporter.report(other, never)).toEqual({ kind: "Created", name: `${first}-3` });
  });

  it.each([30, 98])("is not refused because of %i earlier departures", async (count) => {
    for (let number = 1; number <= count; number += 1) {
      await put(number === 1 ? first : `${first}-${number}`, { cause: "Planned" }, ended);
    }
    const next = `${first}-${count + 1}`;
    expect(await reporter.report(spot, never)).toEqual({ kind: "Created", name: next });
    expect(await reporter.report(spot, never)).toEqual({ kind: "Known", name: next });
  });

  it("finds the live departure behind many that have ended", async () => {
    for (let number = 2; number <= 40; number += 1) {
      await put(`${first}-${number}`, { cause: "Planned" }, ended);
    }
    await put(first, { cause: "Planned" }, ended);
    await put(`${first}-41`, { cause: "Planned" });
    expect(await reporter.report(spot, never)).toEqual({ kind: "Tightened", name: `${first}-41` });
  });

  it("is closed if that departure was for this very notice and a person cancelled it", async () => {
    await reporter.report(spot, never);
    await say(first, ended);
    expect(await reporter.report(spot, never)).toEqual({ kind: "Closed", name: first });
    expect(await names()).toEqual([first]);
  });

  it("is not closed if the controller took the machine for another one", async () => {
    await reporter.report(spot, never);
    await say(first, { ...ended, outcome: "Preempted", reason: "MachineReplaced" });
    expect(await reporter.report(spot, never)).toEqual({ kind: "Created", name: `${first}-2` });
  });

  it("is not closed by a departure that was given up at an earlier deadline", async () => {
    await reporter.report(spot, never);
    await say(first, { phase: "Ended", outcome: "RolledBack", reason: "NoticeWithdrawn" });
    expect(await reporter.report(spot, never)).toEqual({ kind: "Closed", name: first });
    const later = { ...spot, deadlineAt: plus(nowAt, seconds(900)) };
    const again = await reporter.report({ ...later, isReckoned: true }, never);
    expect(again.kind).toBe("Closed");
    expect(await reporter.report(later, never)).toMatchObject({ kind: "Created" });
  });

  it("is not closed by a departure of an earlier boot of the machine", async () => {
    await put(first, { node: { ...node, bootID: "boot-0" }, cause: "SpotInterruption" }, ended);
    expect(await reporter.report(spot, never)).toEqual({ kind: "Created", name: `${first}-2` });
  });
});

describe("a notice that the cloud withdraws", () => {
  it("is marked as withdrawn on the departure that it created", async () => {
    await reporter.report(spot, never);
    expect(await reporter.withdraw(plus(nowAt, seconds(20)), never)).toBe(first);
    expect((await read(first)).spec).toMatchObject({
      withdrawnAt: formatInstant(plus(nowAt, seconds(20))),
    });
    // Once: the second time there is nothing left to withdraw.
    expect(await reporter.withdraw(plus(nowAt, seconds(30)), never)).toBeUndefined();
  });

  it.each([
    ["a planned departure", { cause: "Planned" }],
    ["one that a user requested", { cause: "Manual", source: "kubectl" }],
    [
      "one created from a queue",
      { cause: "SpotInterruption", source: "queue/sqs", noticedAt: formatInstant(nowAt) },
    ],
  ])("changes no departure that an agent did not create: %s", async (_, spec) => {
    await put(first, spec);
    expect(await reporter.withdraw(nowAt, never)).toBeUndefined();
    expect((await read(first)).spec).not.toHaveProperty("withdrawnAt");
  });

  it("is followed by a new departure only when the previous one has been undone", async () => {
    await reporter.report(spot, never);
    await reporter.withdraw(nowAt, never);
    await expect(reporter.report(spot, never)).rejects.toMatchObject({
      code: "CONFLICT",
      retryable: true,
    });
    await say(first, { phase: "Ended", outcome: "Cancelled", reason: "NoticeWithdrawn" });
    expect(await reporter.report(spot, never)).toEqual({ kind: "Created", name: `${first}-2` });
  });
});

describe("the notice reporter", () => {
  it("changes no departure of another node of the same name", async () => {
    // A node with the same name and the same start of its uid: the name alone does not identify it.
    await put(first, { node: { ...node, uid: "0b1f7a3e-ffff" }, cause: "SpotInterruption" });
    expect(await reporter.report(spot, never)).toEqual({ kind: "Created", name: `${first}-2` });
    expect(await reporter.withdraw(nowAt, never)).toBe(`${first}-2`);
    expect(warned).toEqual([
      { event: "departure-name-taken", node: "n1", taken: first, instead: `${first}-2` },
    ]);
  });

  it("does not find another node's departure when it looks up its own", async () => {
    await put(first, { node: { ...node, uid: "0b1f7a3e-ffff" }, cause: "SpotInterruption" });
    expect(await reporter.look(first, never)).toBeUndefined();
  });

  it("logs no taken name if it belongs to a departure of its own node", async () => {
    await put(first, { cause: "Planned" }, { phase: "Ended", outcome: "Cancelled" });
    expect(await reporter.report(spot, never)).toEqual({ kind: "Created", name: `${first}-2` });
    expect(warned).toEqual([]);
  });

  it.each([
    [401, "API_UNAUTHORIZED"],
    [403, "RIGHT_MISSING"],
    [404, "CRD_MISSING"],
    [500, "API_REFUSED"],
  ])("explains a refusal with %d", async (status, code) => {
    api.failNext({ match: { method: "POST" }, answer: { status, body: { kind: "Status" } } });
    await expect(reporter.report(spot, never)).rejects.toMatchObject({ code });
  });
});
