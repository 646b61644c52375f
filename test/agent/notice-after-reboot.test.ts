import { expect, it } from "vitest";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import { plus, seconds } from "../../src/core/time/time.ts";
import { departureObject } from "../../src/kube/object/translate-departure.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { modelClusterApi } from "../support/model-cluster-api.ts";

const never = new AbortController().signal;
const first = "n1-0b1f7a3e";

/** A machine that is rebooted after it has reported this event of Azure, which has begun. */
async function rebooted(reason = "MachineRebooted") {
  const clock = new ManualClock();
  const api = await modelClusterApi(clock);
  const reporterIn = (bootID: string) => {
    const node = { name: "n1", uid: "0b1f7a3e-7f0e", bootID };
    return new NoticeReporter({ api, identify: async () => node, log: { warn: () => {} } });
  };
  const event = {
    ...({ cause: "ScheduledMaintenance", source: "azure/scheduled-events" } as const),
    ...{ deadlineAt: plus(clock.now(), seconds(1)), noticedAt: clock.now(), isReckoned: true },
    eventIds: ["602D9444-D2CD"],
  };
  await reporterIn("boot-1").report(event, never);
  await api.send({
    ...{ method: "PATCH", path: `/apis/lastcall.dev/v1alpha1/departures/${first}/status` },
    patchType: "application/merge-patch+json",
    body: { status: { phase: "Ended", outcome: "Preempted", reason } },
  });
  return { event, reporter: reporterIn("boot-2"), before: reporterIn("boot-1") };
}

it("an event that a machine has been through by its reboot is closed", async () => {
  const { event, reporter } = await rebooted();
  const begun = { ...event, hasBegun: true };
  expect(await reporter.report(begun, never)).toEqual({ kind: "Closed", name: first });
});

it.each([
  ["another event", { hasBegun: true, eventIds: ["A123BC45-1234"] }],
  ["one that has not begun", {}],
])("%s is not", async (_, change) => {
  const { event, reporter } = await rebooted();
  const again = await reporter.report({ ...event, ...change }, never);
  expect(again).toEqual({ kind: "Created", name: `${first}-2` });
});

it("a notice for a Node that is gone is closed: another departure could mark nothing", async () => {
  const { event, before } = await rebooted("NodeGone");
  expect(await before.receptionOf(first, never)).toBe("Settled");
  expect(await before.report(event, never)).toEqual({ kind: "Closed", name: first });
});

it.each([
  ["that waits for its instant", {}],
  ["that is under way", { phase: "Draining" }],
])("a departure of its earlier boot %s is none of this one", async (_, status) => {
  const { reporter, notice } = await withDeparture({ cause: "Planned", source: "planner" }, status);
  expect(await reporter.report(notice, never)).toEqual({ kind: "Created", name: `${first}-2` });
});

it("an event that a machine has been through is closed, though its departure has not ended", async () => {
  const cause = "ScheduledMaintenance";
  const told = { cause, source: "agent/azure/scheduled-events" } as const;
  const { reporter, notice } = await withDeparture(told, { phase: "Draining" });
  const event = { ...notice, cause, eventIds: [], hasBegun: true } as const;
  expect(await reporter.report(event, never)).toEqual({ kind: "Closed", name: first });
});

/** A reporter in the boot after that of a departure, and a notice. */
async function withDeparture(spec: Pick<Body, "cause" | "source">, status: object) {
  const clock = new ManualClock();
  const api = await modelClusterApi(clock);
  const node = { name: "n1", uid: "0b1f7a3e-7f0e", bootID: "boot-1" };
  const body = departureObject({ name: first, node, departAt: clock.now(), ...spec });
  const path = "/apis/lastcall.dev/v1alpha1/departures";
  await api.send({ method: "POST", path, body });
  await api.send({
    ...{ method: "PATCH", path: `${path}/${first}/status`, body: { status } },
    patchType: "application/merge-patch+json",
  });
  const identify = async () => ({ ...node, bootID: "boot-2" });
  const reporter = new NoticeReporter({ api, identify, log: { warn: () => {} } });
  const notice = {
    ...({ cause: "SpotInterruption", source: "gcp/metadata", eventIds: ["now"] } as const),
    ...{ deadlineAt: plus(clock.now(), seconds(30)), noticedAt: clock.now() },
  };
  return { reporter, notice };
}

type Body = Parameters<typeof departureObject>[0];
