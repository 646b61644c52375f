import { describe, expect, it } from "vitest";
import { OperationWatch, readOperation } from "../../src/cli/cluster/operation-watch.ts";
import type { KubeAnswer, KubeRequest, KubeSender } from "../../src/contracts/kube-api.ts";
import { formatInstant, hours, instant, minus, plus, seconds } from "../../src/core/time/time.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { waitUntil } from "../support/wait-until.ts";

const at = instant(Date.UTC(2026, 10, 20, 12));

const lease = (renewedAt = at, version = "1") => ({
  metadata: { name: "lastcall", namespace: "ops", uid: "lease", resourceVersion: version },
  spec: {
    holderIdentity: "lastcall-1",
    leaseDurationSeconds: 40,
    renewTime: formatInstant(renewedAt),
  },
});

const agents = {
  metadata: {
    name: "agent",
    namespace: "ops",
    labels: { "app.kubernetes.io/component": "agent", "app.kubernetes.io/name": "lastcall" },
  },
  spec: { template: { spec: { containers: [{ image: "lastcall" }] } } },
  status: { desiredNumberScheduled: 12, numberReady: 11 },
};

/** Answers by path; any other path is forbidden. */
function answering(answers: Readonly<Record<string, unknown>>): KubeSender {
  return {
    send: async ({ path }: KubeRequest): Promise<KubeAnswer> =>
      path in answers
        ? { status: 200, body: answers[path] as object }
        : { status: 403, body: { kind: "Status" } },
  };
}

const leases = "/apis/coordination.k8s.io/v1/leases";
const daemonSets = "/apis/apps/v1/daemonsets";
const read = async (answers: Readonly<Record<string, unknown>>, namespace = "ops") =>
  (await readOperation({ api: answering(answers), namespace }, { at })).operation;

describe("whether anybody acts", () => {
  it("is read from the Lease and the agents' DaemonSet", async () => {
    expect(
      await read({ [leases]: { items: [lease()] }, [daemonSets]: { items: [agents] } }),
    ).toEqual({
      controller: { kind: "Leads", holder: "lastcall-1" },
      agents: { kind: "Found", ready: 11, wanted: 12 },
    });
  });

  it("is said to be over when the Lease has expired", async () => {
    const renewedAt = minus(at, hours(1));
    const { controller } = await read({ [leases]: { items: [lease(renewedAt)] } });
    expect(controller).toEqual({ kind: "Expired", holder: "lastcall-1", renewedAt });
  });

  it("is unknown to a caller who may not read it, not absent", async () => {
    expect(await read({})).toEqual({
      controller: { kind: "Unreadable" },
      agents: { kind: "Unreadable" },
    });
    // In a namespace where nothing is, another may have it.
    const own = "/apis/apps/v1/namespaces/ops/daemonsets";
    expect((await read({ [own]: { items: [] } })).agents).toEqual({ kind: "Unreadable" });
    expect((await read({ [own]: { items: [agents] } })).agents).toMatchObject({ kind: "Found" });
    expect((await read({ [daemonSets]: { items: [] } })).agents).toEqual({ kind: "None" });
  });
});

it("a Lease that is renewed is alive, however far the controller's clock is behind", async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const behind = minus(clock.now(), hours(2));
  const answers: Record<string, unknown> = { [leases]: { items: [lease(behind)] } };
  const watch = new OperationWatch({
    ...{ api: answering(answers), namespace: "ops", clock, onChange: () => {} },
  });
  const running = watch.run(stop.signal);
  const kind = () => watch.known()?.controller.kind;
  await waitUntil(async () => kind() === "Expired", {
    what: "the Lease looks expired",
    timeoutMs: 5000,
  });
  answers[leases] = { items: [lease(plus(behind, seconds(10)), "2")] };
  await clock.advance(seconds(10));
  await waitUntil(async () => kind() === "Leads", { what: "the renewal is seen", timeoutMs: 5000 });
  stop.abort();
  await running;
});
