import { describe, expect, it } from "vitest";
import {
  formatInstant,
  hours,
  type Millis,
  minutes,
  plus,
  seconds,
} from "../../src/core/time/time.ts";
import {
  dawn,
  departures,
  ModelWorld,
  nodes,
  spotPolicy,
  webWorkload,
} from "../support/model-world.ts";

interface Shown {
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status: {
    readonly phase: string;
    readonly timeline: readonly { step: string; result: string }[];
  };
}

/** Three nodes, of which n1 has a planned departure, or one that a person requested. */
async function world(how: { byHand?: object; policy?: object; exitAfterSeconds?: number } = {}) {
  const on = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) on.addNode(name, "a");
  const { byHand, policy, exitAfterSeconds } = how;
  webWorkload(on, { replicas: 6, maxUnavailable: 6, exitAfterSeconds: exitAfterSeconds ?? 20 });
  const lifetime = byHand === undefined ? { max: "24h" } : {};
  spotPolicy(on, { lifetime, replacement: { when: "None" }, ...policy });
  await on.pass(seconds(5));
  if (byHand !== undefined) order(on, byHand);
  const stop = new AbortController();
  const running = on.startController(stop.signal);
  await on.pass(seconds(10));
  const end = async () => {
    stop.abort();
    await running;
  };
  return { on, end };
}

function order(on: ModelWorld, spec: object): void {
  const uid = on.get(`${nodes}/n1`)?.metadata?.uid ?? "";
  on.create(departures, {
    apiVersion: "lastcall.dev/v1alpha1",
    kind: "Departure",
    metadata: { name: `n1-${uid.slice(0, 8)}` },
    spec: { node: { name: "n1", uid }, cause: "Manual", source: "person", ...spec },
  });
}

function shown(on: ModelWorld): Shown {
  return on.departureOf("n1") as unknown as Shown;
}

function patch(on: ModelWorld, spec: object): void {
  const path = `${departures}/${on.departureOf("n1")?.metadata?.name}`;
  const patchType = "application/merge-patch+json";
  expect(on.api.handle({ method: "PATCH", path, patchType, body: { spec } }).status).toBe(200);
}

/** Changes the departure as an agent does: the cloud interrupts n1 in two minutes. */
function interrupt(on: ModelWorld) {
  const now = on.clock.now();
  const deadlineAt = formatInstant(plus(now, minutes(2)));
  const noticedAt = formatInstant(now);
  patch(on, { cause: "SpotInterruption", noticedAt, deadlineAt, source: "agent/aws/test" });
  return { deadlineAt };
}

function signsOf(on: ModelWorld) {
  const node = on.get(`${nodes}/n1`) ?? {};
  const { taints = [] } = node.spec as { taints?: { key: string; value?: string }[] };
  const { conditions } = node.status as {
    conditions: { type: string; reason?: string; message?: string }[];
  };
  const taint = taints.find(({ key }) => key === "lastcall.dev/departing");
  return { taint: taint?.value, condition: conditions.find(({ type }) => type === "Departing") };
}

describe("a notice for a node that is leaving already", () => {
  it("gets an entry in the timeline for each deadline that it names", async () => {
    const { on, end } = await world({ byHand: {}, exitAfterSeconds: 60 });
    expect(shown(on).status.phase).toBe("Draining");
    const first = interrupt(on);
    await on.pass(seconds(20));
    const second = interrupt(on);
    expect(second.deadlineAt).not.toBe(first.deadlineAt);
    await on.pass(minutes(1));
    const lines = shown(on).status.timeline.filter(({ step }) => step === "Noticed");
    expect(lines.map(({ result }) => result)).toEqual([
      `n1 leaves because the cloud interrupts it at ${first.deadlineAt}.`,
      `n1 leaves because the cloud interrupts it at ${second.deadlineAt}.`,
    ]);
    await end();
  });
});

describe("a notice for a node whose departure is hours ahead", () => {
  it("shows its cause on the node and in the departure, whose timeline keeps the planned time", async () => {
    const { on, end } = await world();
    const plannedAt = String(shown(on).spec.departAt);
    expect(plannedAt > formatInstant(plus(on.clock.now(), hours(10)))).toBe(true);
    const { deadlineAt } = interrupt(on);
    await on.pass(seconds(5));
    expect(signsOf(on)).toMatchObject({
      taint: "SpotInterruption",
      condition: { reason: "SpotInterruption", message: expect.stringContaining(deadlineAt) },
    });
    const { spec, status } = shown(on);
    expect(status.phase).toBe("Draining");
    expect(spec).not.toHaveProperty("departAt");
    expect(status.timeline[0]?.result).toContain(`previously planned for ${plannedAt}`);
    await on.pass(minutes(1));
    on.api.handle({ method: "DELETE", path: `${nodes}/n1` });
    await on.pass(seconds(5));
    const counted = on.counted.filter((one) => one.startsWith("lastcall_departures_total"));
    expect(counted).toEqual([
      "lastcall_departures_total policy=spot cause=SpotInterruption outcome=Preempted",
    ]);
    await end();
  });

  it("ends that departure if the policy ignores it, and the node is planned again", async () => {
    const { on, end } = await world({ policy: { onNotice: { spotInterruption: "Ignore" } } });
    interrupt(on);
    await on.pass(seconds(5));
    expect(shown(on).status).toMatchObject({ phase: "Ended", reason: "NoticeIgnored" });
    expect(on.marksOf("n1")).toEqual([]);
    const ofNode = on.list(departures).map((one) => one as unknown as Shown);
    const live = ofNode.filter(({ spec, status }) => {
      return (spec.node as { name: string }).name === "n1" && status?.phase !== "Ended";
    });
    expect(live.map(({ spec }) => spec.cause)).toEqual(["Planned"]);
    await end();
  });
});

describe("a notice for a node whose departure is running", () => {
  it("replaces the previous cause on the node", async () => {
    const { on, end } = await world({ byHand: {} });
    expect(signsOf(on)).toMatchObject({ taint: "Manual", condition: { reason: "Manual" } });
    const { deadlineAt } = interrupt(on);
    await on.pass(seconds(3));
    expect(signsOf(on)).toMatchObject({
      taint: "SpotInterruption",
      condition: { reason: "SpotInterruption", message: expect.stringContaining(deadlineAt) },
    });
    await end();
  });

  it("does not stop its drain if the policy would only cordon", async () => {
    const policy = { onNotice: { spotInterruption: "Cordon" } };
    const { on, end } = await world({ byHand: {}, policy });
    interrupt(on);
    await on.pass(seconds(30));
    expect(on.podsOn("n1")).toEqual([]);
    expect(shown(on).status.phase).toBe("Releasing");
    await end();
  });

  it("restarts a departure that is being rolled back", async () => {
    const { on, end } = await world({ byHand: {} });
    const { send } = on.api;
    let isBroken = true;
    on.api.send = (request) => {
      const isMark = request.method === "PATCH" && request.path === `${nodes}/n1`;
      if (!isMark || !isBroken) return send.call(on.api, request);
      return Promise.resolve({ status: 500, body: { kind: "Status", message: "no" } });
    };
    patch(on, { hold: true });
    await on.passUntil(() => shown(on).status.phase === "RollingBack", seconds(10));
    interrupt(on);
    isBroken = false;
    await on.pass(seconds(20));
    expect(on.marksOf("n1")).toContain("unschedulable");
    expect(["Draining", "Releasing"]).toContain(shown(on).status.phase);
    await end();
  });
});

describe("a notice that arrives while the end of a roll-back is being written", () => {
  it("restarts the departure", async () => {
    const { on, end } = await world({ byHand: {} });
    let isTold = false;
    on.beforeWrite = ({ path, body }) => {
      const status = (body as { status?: { phase?: string } } | undefined)?.status;
      if (isTold || !path.endsWith("/status") || status?.phase !== "Ended") return;
      isTold = true;
      interrupt(on);
    };
    patch(on, { hold: true });
    await on.pass(seconds(20));
    expect(isTold).toBe(true);
    expect(on.marksOf("n1")).toContain("unschedulable");
    expect(["Draining", "Releasing"]).toContain(shown(on).status.phase);
    await end();
  });
});

describe("a person's deadline, after a notice without one", () => {
  it("deletes no pod regardless of its budget", async () => {
    const by = (span: Millis) => formatInstant(plus(dawn, span));
    const byHand = { departAt: by(minutes(1)), deadlineAt: by(minutes(4)) };
    const { on, end } = await world({ byHand });
    on.patchBudget("web", { spec: { maxUnavailable: 0 } });
    patch(on, { noticedAt: formatInstant(on.clock.now()), source: "agent/aws/hook" });
    await on.pass(minutes(20));
    expect(on.podsOn("n1")).toHaveLength(2);
    expect(shown(on).status).toMatchObject({ phase: "Draining" });
    expect(signsOf(on).condition?.message).toBe("n1 leaves because the cloud interrupts it.");
    await end();
  });
});
