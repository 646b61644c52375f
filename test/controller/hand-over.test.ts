import { describe, expect, it } from "vitest";
import type { KubeApi } from "../../src/contracts/kube-api.ts";
import type { Telemetry } from "../../src/contracts/telemetry.ts";
import { DepartureWriter } from "../../src/controller/departure-writer.ts";
import { instant, seconds } from "../../src/core/time/time.ts";
import { KubeDepartureStore } from "../../src/kube/departure-store.ts";
import { translateDeparture } from "../../src/kube/object/translate-departure.ts";
import { departures, ModelWorld } from "../support/model-world.ts";

const deadlineAt = "2026-11-20T00:02:00.000Z";
const withdrawnAt = "2026-11-20T00:00:01.000Z";

/** A node that one Departure has marked, and a notice that arrived as another Departure. */
async function stage(owner: {
  readonly spec?: object;
  readonly phase: string;
  /** The phase of the owner just before a write of its spec arrives. */
  readonly thenPhase?: string;
  readonly bootID?: string;
}) {
  const world = new ModelWorld();
  world.addNode("n1", "a");
  await world.pass(seconds(1));
  const uid = world.get("/api/v1/nodes/n1")?.metadata?.uid ?? "";
  const create = (name: string, spec: object, bootID?: string) =>
    world.create(departures, {
      apiVersion: "lastcall.dev/v1alpha1",
      kind: "Departure",
      metadata: { name },
      spec: { node: { name: "n1", uid, ...(bootID === undefined ? {} : { bootID }) }, ...spec },
    });
  const told = { cause: "SpotInterruption", noticedAt: "2026-11-20T00:00:00Z" };
  create("former", { ...told, ...owner.spec }, owner.bootID);
  const setPhase = (phase: string) =>
    world.api.handle({
      method: "PATCH",
      path: `${departures}/former/status`,
      patchType: "application/merge-patch+json",
      body: { status: { phase, outcome: "RolledBack" } },
    });
  setPhase(owner.phase);
  create(
    "notice",
    {
      ...{ cause: "SpotInterruption", source: "agent/aws/test", deadlineAt },
      noticedAt: "2026-11-20T00:00:02Z",
    },
    owner.bootID && "boot-2",
  );
  const never = () => Promise.reject(new Error("nobody asks"));
  const api: KubeApi = {
    watch: (request) => world.watched.watch(request),
    send: (request) => {
      if (request.method === "PATCH" && owner.thenPhase !== undefined) setPhase(owner.thenPhase);
      return world.watched.send(request);
    },
  };
  const writer = new DepartureWriter(new KubeDepartureStore(api), {} as Telemetry);
  const read = (name: string) => {
    const found = world.get(`${departures}/${name}`);
    return found && translateDeparture(found);
  };
  const notice = read("notice");
  if (notice === undefined) return never();
  const former = () => read("former") ?? expect.unreachable();
  return { owner: () => world.get(`${departures}/former`), former, writer, notice };
}

describe("a notice for a node with another departure", () => {
  it("is written to that departure", async () => {
    const { owner, writer, notice } = await stage({ phase: "Draining" });
    expect(await writer.handOver(notice, "former")).toBe("Done");
    expect(owner()?.spec).toMatchObject({ deadlineAt });
  });

  it("waits for the end of a departure that is being withdrawn, lest it be withdrawn with it", async () => {
    const { owner, writer, notice } = await stage({
      ...{ phase: "RollingBack", spec: { withdrawnAt } },
    });
    await expect(writer.handOver(notice, "former")).rejects.toMatchObject({
      ...{ code: "CONFLICT", retryable: true },
      message: expect.stringContaining("the Departure former is being withdrawn"),
    });
    expect(owner()?.spec).not.toHaveProperty("deadlineAt");
  });

  it("gets the node once that departure has ended", async () => {
    const { writer, notice } = await stage({ phase: "Ended", spec: { withdrawnAt } });
    expect(await writer.handOver(notice, "former")).toBe("Orphan");
  });

  it("gets the node if that departure is of an earlier boot, with which it ends", async () => {
    const { owner, writer, notice } = await stage({ phase: "Draining", bootID: "boot-1" });
    expect(await writer.handOver(notice, "former")).toBe("Orphan");
    expect(owner()?.spec).not.toHaveProperty("deadlineAt");
  });

  it("gets the node if that departure ends while the notice is being handed over", async () => {
    const { writer, notice } = await stage({ phase: "RollingBack", thenPhase: "Ended" });
    expect(await writer.handOver(notice, "former")).toBe("Orphan");
  });
});

describe("a notice for a planned departure, as a late watch shows it", () => {
  const spec = { cause: "Planned", noticedAt: undefined };
  const update = {
    ...{ noticedAt: instant(Date.parse(withdrawnAt)), source: "node/Ready/shutdown-boot-1" },
    cause: "NodeShutdown",
  } as const;

  it("is written to it if it is still being drained", async () => {
    const { owner, former, writer } = await stage({ spec, phase: "Draining" });
    await writer.notice(former(), update);
    expect(owner()?.spec).toMatchObject({ cause: "NodeShutdown" });
  });

  it("is not written to it if it releases its machine by now: that is why the kubelet ends", async () => {
    const { owner, former, writer } = await stage({
      ...{ spec, phase: "Draining", thenPhase: "Releasing" },
    });
    await writer.notice(former(), update);
    expect(owner()?.spec).toMatchObject({ cause: "Planned" });
    expect(owner()?.spec).not.toHaveProperty("noticedAt");
  });
});
