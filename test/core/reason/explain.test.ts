import { describe, expect, it } from "vitest";
import { explain, reasons } from "../../../src/core/reason/reason.ts";
import { at } from "../fleet-builder.ts";

const facts = {
  node: "n1",
  policy: "spot",
  at: at("2026-11-20T22:00:00Z"),
  deadlineAt: at("2026-11-20T23:30:00Z"),
  until: at("2026-11-20T21:00:00Z"),
  detail: "shop/web-0",
};

describe("the sentence for the reason", () => {
  it.each(reasons)("%s names the node and has no gaps", (reason) => {
    const sentence = explain(reason, facts);
    expect(sentence).toMatch(/^n1 [a-z].*[^.]\.$/);
    expect(sentence).not.toMatch(/undefined|unknown|\?|\[object|NaN/);
  });

  it.each(reasons)("%s is complete even without any facts", (reason) => {
    const sentence = explain(reason);
    expect(sentence).toMatch(/^the node [a-z].*[^.]\.$/);
    expect(sentence).not.toMatch(/undefined|\[object|NaN/);
  });

  it("names the facts", () => {
    expect(explain("AlertsFiring", { node: "n1", detail: "ClusterDown" })).toBe(
      "n1 waits, because alerts are firing: ClusterDown.",
    );
    expect(explain("AlertsUnknown", { node: "n1", detail: "http://alerts:9093" })).toBe(
      "n1 waits, because Alertmanager at http://alerts:9093 does not respond, and the gate fails closed.",
    );
    expect(explain("BlockingPod", { node: "n1", detail: "shop/batch-0" })).toBe(
      "n1 waits for the blocking pod shop/batch-0.",
    );
  });
});
