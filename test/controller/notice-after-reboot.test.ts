/** Notices of a boot that follows the one which a departure is about. */
import { describe, expect, it } from "vitest";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import type { KubeAnswer, KubeObject, KubeRequest } from "../../src/contracts/kube-api.ts";
import type { MachineNotice } from "../../src/core/notice/notice.ts";
import { formatInstant, minutes, plus, seconds } from "../../src/core/time/time.ts";
import { isLastcallError } from "../../src/errors.ts";
import { departures, ModelWorld, nodes, spotPolicy, webWorkload } from "../support/model-world.ts";

const never = new AbortController().signal;

/** n1 drains slowly and reboots; from then on, each status of a Departure may be refused. */
async function rebooted(spec: object, { isRefused }: { readonly isRefused: boolean }) {
  const world = new ModelWorld();
  for (const name of ["n0", "n1", "n2"]) world.addNode(name, name);
  webWorkload(world, { replicas: 6, maxUnavailable: 0 });
  spotPolicy(world, {});
  const over = new AbortController();
  const controller = world.startController(over.signal);
  await world.pass(seconds(10));
  const { metadata, spec: written, status } = world.get(`${nodes}/n1`) as KubeObject;
  const { bootID } = (status as { readonly nodeInfo: { readonly bootID: string } }).nodeInfo;
  const { providerID } = written as { readonly providerID: string };
  const uid = metadata?.uid ?? "";
  world.create(departures, {
    ...{ apiVersion: "lastcall.dev/v1alpha1", kind: "Departure" },
    metadata: { name: `n1-${uid.slice(0, 8)}` },
    spec: { node: { name: "n1", uid, providerID, bootID }, ...spec },
  });
  await world.passUntil(() => world.statusOf("n1").phase === "Draining", minutes(1));
  const send = world.watched.send.bind(world.watched);
  world.watched.send = async (request: KubeRequest): Promise<KubeAnswer> =>
    isRefused && request.method === "PATCH" && /\/departures\/[^/]+\/status$/.test(request.path)
      ? { status: 422, body: { kind: "Status", apiVersion: "v1", message: "no status" } }
      : send(request);
  world.api.handle({
    ...{ method: "PATCH", path: `${nodes}/n1/status` },
    patchType: "application/merge-patch+json",
    body: { status: { nodeInfo: { bootID: "another-boot" } } },
  });
  const identify = async () => ({ name: "n1", uid, bootID: "another-boot" });
  const api = { send: async (request: KubeRequest) => world.api.handle(request) };
  const reporter = new NoticeReporter({ api, identify, log: { warn: () => {} } });
  const stop = async () => {
    over.abort();
    await controller;
  };
  return { world, reporter, stop };
}

/** As the agent does: again each second while that may help. */
async function report(reporter: NoticeReporter, notice: MachineNotice, world: ModelWorld) {
  for (let tries = 0; tries < 20; tries += 1) {
    try {
      return await reporter.report(notice, never);
    } catch (error) {
      if (!isLastcallError(error) || !error.retryable) throw error;
      await world.pass(seconds(1));
    }
  }
  return undefined;
}

const start = { departAt: "2026-11-20T00:00:00Z" };
const interrupted = {
  ...{ cause: "SpotInterruption", source: "test/feed/first" },
  ...{ noticedAt: "2026-11-20T00:00:00Z", deadlineAt: "2026-11-20T00:30:00Z" },
};

describe.each([
  ["requested", { cause: "Manual", ...start }],
  ["noticed", interrupted],
])("a node that rebooted while it was drained by a %s departure", (_, spec) => {
  it.each([
    ["is recorded as ended", false],
    ["cannot be recorded as ended", true],
  ])("is drained by the notice of its new boot although the old one %s", async (__, isRefused) => {
    const { world, reporter, stop } = await rebooted(spec, { isRefused });
    await world.pass(seconds(2));
    const notice: MachineNotice = {
      ...{ cause: "SpotInterruption", source: "gcp/metadata", eventIds: ["second"] },
      ...{ noticedAt: world.clock.now(), deadlineAt: plus(world.clock.now(), minutes(2)) },
    };
    expect(await report(reporter, notice, world)).toMatchObject({ kind: "Created" });
    await world.pass(seconds(5));
    expect(world.marksOf("n1")).toContain("unschedulable");
    await world.pass(seconds(110));
    expect(world.podsOn("n1")).toEqual([]);
    expect(world.marksOf("n1"), formatInstant(world.clock.now())).toContain("unschedulable");
    await stop();
  });
});
