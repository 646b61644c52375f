import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ScheduledEvent } from "../../../src/cloud/aws/ec2-machine.ts";
import { readScheduledEvent } from "../../../src/cloud/aws/instance-feed.ts";
import { instant } from "../../../src/core/time/time.ts";

const at = instant(Date.UTC(2026, 10, 20, 12));
const notBeforeAt = instant(Date.UTC(2026, 10, 22, 12));
const event: ScheduledEvent = {
  instance: "i-0123456789abcdef0",
  id: "instance-event-0d59937288b749b32",
  code: "system-reboot",
  description: "scheduled reboot",
  notBeforeAt,
};

describe("an event that EC2 has scheduled for an instance", () => {
  it.each([
    "instance-reboot",
    "instance-retirement",
    "instance-stop",
    "system-maintenance",
    "system-reboot",
  ])("is maintenance with its start as the deadline: %s", (code) => {
    expect(readScheduledEvent({ ...event, code }, at)).toEqual({
      kind: "Read",
      instanceNotice: {
        machine: event.instance,
        notice: {
          cause: "ScheduledMaintenance",
          deadlineAt: notBeforeAt,
          noticedAt: at,
          source: "aws/instance-status",
          eventId: event.id,
        },
      },
    });
  });

  it.each([
    ["[Completed] scheduled reboot", true],
    ["[Canceled] scheduled reboot", true],
    ["scheduled reboot, [Completed] soon", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("is withdrawn only if its description says so: %j", (description, withdrawn) => {
    expect(readScheduledEvent({ ...event, description }, at)).toMatchObject({
      instanceNotice: { notice: withdrawn === true ? { withdrawn } : { deadlineAt: notBeforeAt } },
    });
    const reading = readScheduledEvent({ ...event, description }, at);
    const notice = reading.kind === "Read" ? reading.instanceNotice.notice : undefined;
    expect(notice?.withdrawn).toBe(withdrawn);
  });

  it.each([
    ["Read", "instance-reboot"],
    ["Read", "system-reboot"],
    ["Read", "system-maintenance"],
    ["Over", "instance-stop"],
    ["Over", "instance-retirement"],
    ["Over", "something-new"],
  ])("is %s once it is completed, if it is %s", (kind, code) => {
    const description = "[Completed] The instance is on degraded hardware";
    expect(readScheduledEvent({ ...event, code, description }, at).kind).toBe(kind);
  });

  it.each([
    ["instance", { instance: undefined }],
    ["instance that is one", { instance: "vol-0123456789abcdef0" }],
    ["id", { id: undefined }],
    ["id that is one", { id: "" }],
    ["beginning", { notBeforeAt: undefined }],
  ])("cannot be read without an %s", (_, missing) => {
    expect(readScheduledEvent({ ...event, ...missing }, at).kind).toBe("Unreadable");
  });

  it("may have any texts: it is read without a throw, and its problem is short", () => {
    const text = fc.option(fc.oneof(fc.string(), fc.constantFrom("i-0123456789abcdef0")), {
      nil: undefined,
    });
    const foreign = fc.record({
      instance: text,
      id: text,
      code: text,
      description: text,
      notBeforeAt: fc.option(fc.integer().map(instant), { nil: undefined }),
    });
    fc.assert(
      fc.property(foreign, (one) => {
        const reading = readScheduledEvent(one, at);
        if (reading.kind === "Over") return;
        if (reading.kind === "Unreadable") {
          expect(reading.problem.length).toBeLessThan(250);
          return;
        }
        expect(reading.instanceNotice.machine).toMatch(/^i-[0-9a-f]+$/);
        expect(reading.instanceNotice.notice.eventId).toMatch(/^[A-Za-z0-9:._-]{1,80}$/);
      }),
      { seed: 20_261_123, numRuns: 2000 },
    );
  });
});
