import { describe, expect, it } from "vitest";
import { departStep } from "../../../src/core/departure/decision.ts";
import { hours, plus } from "../../../src/core/time/time.ts";
import { aDeparture, aNode, at } from "../fleet-builder.ts";

const now = at("2026-11-20T12:00:00Z");
const n1 = aNode("n1", { uid: "0123456789ab", bootID: "boot-1" });
const request = { departAt: now, deadlineAt: plus(now, hours(1)) };
const pinnedName = "n1-01234567";

describe("a person's request for a departure", () => {
  it("creates a Departure that names the machine, at the requested instants", () => {
    expect(departStep(n1, request, [])).toMatchObject({
      kind: "Create",
      made: {
        ...{ name: pinnedName, cause: "Manual", source: "person", ...request },
        node: { name: "n1", uid: n1.uid, providerID: n1.providerID, bootID: "boot-1" },
      },
    });
  });

  it("takes the next free name if a departure is already planned", () => {
    const planned = aDeparture(n1, { name: pinnedName });
    const ended = aDeparture(n1, { name: `${pinnedName}-2`, status: { phase: "Ended" } });
    expect(departStep(n1, request, [planned, ended])).toMatchObject({
      made: { name: `${pinnedName}-3` },
    });
  });

  it("moves the departure of an earlier request", () => {
    const asked = aDeparture(n1, { cause: "Manual", departAt: plus(now, hours(5)) });
    expect(departStep(n1, request, [asked])).toEqual({
      kind: "Move",
      departure: asked,
      to: request,
    });
  });

  it("keeps the earlier deadline, unless the new instant is not before it", () => {
    const by = { departAt: now, deadlineAt: plus(now, hours(3)) };
    const asked = aDeparture(n1, { cause: "Manual", ...by });
    const moved = (inHours: number) => {
      const step = departStep(n1, { departAt: plus(now, hours(inHours)) }, [asked]);
      return step.kind === "Move" ? step.to.deadlineAt : step.kind;
    };
    expect([moved(2), moved(3), moved(4)]).toEqual([undefined, null, null]);
  });

  it.each([
    ["is draining", { status: { phase: "Draining" } }],
    ["has a notice", { noticedAt: now }],
    ["the cloud is taking", { cause: "SpotInterruption" }],
    ["already has the same request", { cause: "Manual", ...request }],
  ] as const)("changes nothing for a node that %s", (_, over) => {
    const leaving = aDeparture(n1, over as Parameters<typeof aDeparture>[1]);
    expect(departStep(n1, request, [leaving])).toEqual({ kind: "Leave", departure: leaving });
  });

  it("skips a name that belongs to another node's departure, and reports it", () => {
    const other = aDeparture(aNode("n2"), { name: pinnedName });
    expect(departStep(n1, request, [other])).toMatchObject({
      made: { name: `${pinnedName}-2`, namesTaken: [pinnedName] },
    });
  });

  it("ignores the departure of a former node of the same name", () => {
    const former = aDeparture(aNode("n1", { uid: "other" }), { status: { phase: "Draining" } });
    expect(departStep(n1, request, [former]).kind).toBe("Create");
  });
});
