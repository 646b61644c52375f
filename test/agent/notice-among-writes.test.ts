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
const merge = "application/merge-patch+json";

let api: ModelApi;

beforeEach(async () => {
  api = await modelClusterApi(clock);
});

const spot: MachineNotice = {
  cause: "SpotInterruption",
  deadlineAt: plus(nowAt, seconds(120)),
  noticedAt: nowAt,
  source: "aws/spot-instance-action",
  eventIds: ["spot-terminate-1"],
};
const departAt = formatInstant(plus(nowAt, seconds(3600)));
const deadlineAt = formatInstant(plus(nowAt, seconds(7200)));
const planned = { cause: "Planned", departAt, deadlineAt, policy: "spot" };

async function put(spec: object, status?: object): Promise<void> {
  const kind = { apiVersion: "lastcall.dev/v1alpha1", kind: "Departure" };
  const body = { ...kind, metadata: { name: first }, spec: { node, ...spec } };
  expect((await api.send({ method: "POST", path: departures, body })).status).toBe(201);
  if (status !== undefined) await say(status);
}

async function say(status: object): Promise<void> {
  await patch(`${departures}/${first}/status`, { status });
}

async function change(body: object): Promise<void> {
  await patch(`${departures}/${first}`, body);
}

async function patch(path: string, body: object): Promise<void> {
  const answer = await api.send({ method: "PATCH", path, patchType: merge, body });
  expect(answer.status).toBe(200);
}

async function read(): Promise<KubeObject & { spec: Record<string, unknown> }> {
  const answer = await api.send({ method: "GET", path: `${departures}/${first}` });
  return answer.body as KubeObject & { spec: Record<string, unknown> };
}

/** A reporter; `send` takes the place of the API for its patches. */
function reporterWith(send: (request: KubeRequest) => Promise<KubeAnswer>): NoticeReporter {
  const apiOfAgent = {
    send: (request: KubeRequest) =>
      request.method === "PATCH" ? send(request) : api.send(request),
  };
  const log = { warn: () => undefined };
  return new NoticeReporter({ api: apiOfAgent, identify: async () => node, log });
}

/** In its API something happens just before each patch arrives. */
function beforePatch(act: () => Promise<unknown>): NoticeReporter {
  return reporterWith(async (request) => {
    await act();
    return api.send(request);
  });
}

describe("a notice that is written while others write", () => {
  it.each([
    ["with a status", { phase: "Scheduled" }],
    ["without one", undefined],
  ])("applies at once to a plan %s that is moved again and again", async (_, status) => {
    await put(planned, status);
    let moves = 0;
    const moving = beforePatch(async () => {
      moves += 1;
      await change({ spec: { departAt: formatInstant(plus(nowAt, seconds(3600 + moves))) } });
    });
    expect(await moving.report(spot, never)).toEqual({ kind: "Tightened", name: first });
    expect(moves).toBe(1);
    expect((await read()).spec).toMatchObject({
      cause: "SpotInterruption",
      departAt: formatInstant(plus(nowAt, seconds(3601))),
    });
  });

  it.each<[string, () => Promise<void>]>([
    ["ended", () => say({ phase: "Ended", outcome: "Cancelled" })],
    ["started", () => say({ phase: "Preparing" })],
    ["got a deadline", () => change({ spec: { deadlineAt: formatInstant(nowAt) } })],
    ["was withdrawn", () => change({ spec: { withdrawnAt: formatInstant(nowAt) } })],
    [
      "got another notice",
      () => change({ metadata: { annotations: { "lastcall.dev/notice": "another" } } }),
    ],
  ])("is decided again if the departure %s meanwhile", async (_, act) => {
    await put(planned);
    const before = (await read()).spec;
    await expect(beforePatch(act).report(spot, never)).rejects.toMatchObject({
      code: "CONFLICT",
      retryable: true,
    });
    expect((await read()).spec.cause).toBe(before.cause);
  });

  it("keeps the ids of other notices, and other people's annotations", async () => {
    await put(planned);
    const others = { "example.com/note": "ours", "lastcall.dev/notice": "a" };
    await change({ metadata: { annotations: others } });
    await beforePatch(async () => {}).report(spot, never);
    expect((await read()).metadata?.annotations).toEqual({
      ...others,
      "lastcall.dev/notice": "a,spot-terminate-1",
    });
  });

  it("loses the planned deadline if the cloud names none", async () => {
    await put(planned);
    const { deadlineAt: _none, ...hook } = { ...spot, cause: "LifecycleHook" as const };
    await beforePatch(async () => {}).report(hook, never);
    expect((await read()).spec).not.toHaveProperty("deadlineAt");
  });

  it("keeps the words of a policy that refuses it", async () => {
    await put(planned);
    const message = "ValidatingAdmissionPolicy 'lastcall-agent' denied request: no";
    const body = { kind: "Status", code: 422, reason: "Invalid", message };
    const refused = reporterWith(async () => ({ status: 422, body }));
    await expect(refused.report(spot, never)).rejects.toMatchObject({
      code: "API_REFUSED",
      message: expect.stringContaining(message),
    });
  });
});
