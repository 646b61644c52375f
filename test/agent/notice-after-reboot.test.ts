import { expect, it } from "vitest";
import { NoticeReporter } from "../../src/agent/notice-reporter.ts";
import { plus, seconds } from "../../src/core/time/time.ts";
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
