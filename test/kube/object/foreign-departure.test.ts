import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { viewDeparture } from "../../../src/agent/notice-patch.ts";
import type { KubeObject } from "../../../src/contracts/kube-api.ts";
import { instant } from "../../../src/core/time/time.ts";
import { translateDeparture } from "../../../src/kube/object/translate-departure.ts";
import { foreignObject } from "../../support/foreign-object.ts";

const at = instant(Date.UTC(2026, 7, 1, 5, 40));
const deadlineAt = Date.UTC(2026, 7, 1, 5, 41, 2);
const providerID = "azure:///subscriptions/s/resourceGroups/g/virtualMachines/aks-1";

describe("a malformed Departure", () => {
  const spec = {
    node: { name: "aks-1", uid: "0b1f7a3e-7f0e", providerID, bootID: "boot-1" },
    cause: "SpotInterruption",
    departAt: "2026-08-01T05:40:00Z",
    deadlineAt: "2026-08-01T05:41:02Z",
    noticedAt: "2026-08-01T05:40:00Z",
    withdrawnAt: "2026-08-01T05:40:30Z",
    ...{ source: "agent/azure/scheduled-events", policy: "spot", hold: false },
  };
  const status = {
    ...{ phase: "Draining", reason: "DrainRunning", message: "aks-1 is draining." },
    startedAt: "2026-08-01T05:40:01Z",
    machine: { id: "123" },
    drain: { total: 2, left: 1, evicted: 1, forced: 0, waiting: 0, blocked: 0, cut: 0 },
    demands: [{ budget: "shop/web", pods: 1 }],
    timeline: [{ at: "2026-08-01T05:40:01Z", step: "Marked", result: "Done" }],
  };
  const departure = {
    metadata: {
      ...{ name: "aks-1-0b1f7a3e", uid: "d1", resourceVersion: "7" },
      creationTimestamp: "2026-08-01T05:40:00Z",
      annotations: { "lastcall.dev/notice": "602d9444-d2cd" },
    },
    ...{ spec, status },
  } as KubeObject;

  it("is read without throwing, with valid texts and times or none", () => {
    let read = 0;
    fc.assert(
      fc.property(foreignObject([departure]), (object) => {
        const seen = viewDeparture(object);
        const found = translateDeparture(object);
        for (const instants of [
          [seen.deadlineAt, seen.noticedAt, seen.withdrawnAt],
          [found?.departAt, found?.deadlineAt, found?.noticedAt, found?.withdrawnAt],
          [found?.createdAt, found?.deletionAt, found?.status.startedAt, found?.status.endedAt],
          found?.status.timeline.map((entry) => entry.at) ?? [],
        ].flat()) {
          expect(instants === undefined || Number.isFinite(instants)).toBe(true);
        }
        if (found === undefined) return;
        read += 1;
        const { node, name, uid, resourceVersion, cause, status: now } = found;
        for (const text of [node.name, node.uid, name, uid, resourceVersion, cause, now.phase]) {
          expect(text).toBeTypeOf("string");
        }
        const { providerID: machine, bootID } = node;
        for (const text of [machine, bootID, found.source, found.policy, now.reason, now.message]) {
          expect(["string", "undefined"]).toContain(typeof text);
        }
      }),
      { seed: 20_261_126, numRuns: 3000 },
    );
    expect(read).toBeGreaterThan(1000);
  });

  it("keeps every field that can be read", () => {
    const odd = { hold: [], policy: 7, departAt: ["2026-08-01T05:40:00Z"], node: spec.node };
    const found = translateDeparture({
      ...departure,
      spec: { ...spec, ...odd },
      status: { ...status, timeline: [null, 5, {}, ...status.timeline], drain: "much" },
    });
    expect(found).toMatchObject({
      ...{ cause: "SpotInterruption", deadlineAt, noticedAt: at, hold: false },
      status: { phase: "Draining", timeline: [{ step: "Marked", result: "Done" }] },
    });
    expect(found?.policy).toBeUndefined();
    expect(found?.departAt).toBeUndefined();
  });
});
