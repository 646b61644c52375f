import { expect, it } from "vitest";
import { cutName, nameParts, withCutNames } from "../../src/board/name-parts.ts";

it.each([
  ["gke-prod-spot-pool-n2d-standard-8-3f9ac21b-x7km", "3f9ac21b-x7km"],
  ["aks-spot-12345678-vmss00000a", "vmss00000a"],
  ["ip-10-0-12-34.eu-west-1.compute.internal", ""],
  ["web-b-8vc7", "b-8vc7"],
  ["n7", ""],
  ["europe-west1-b", "west1-b"],
  ["averylongnamewithoutanydashes", "nydashes"],
  ["", ""],
])("%s keeps its end %s in a narrow column, and loses no letter", (name, end) => {
  const parts = nameParts(name);
  expect(parts[1]).toBe(end);
  expect(parts.join("")).toBe(name);
});

it.each([
  ["gke-prod-spot-pool-n2d-standard-8-3f9ac21b-x7km", 26, "gke-prod-spo…3f9ac21b-x7km"],
  ["gke-prod-spot-pool-n2d-standard-8-3f9ac21b-x7km", 10, "…c21b-x7km"],
  ["ip-10-0-12-34.eu-west-1.compute.internal", 20, "ip-10-0-12-34.eu-we…"],
  ["web-b-8vc7", 10, "web-b-8vc7"],
  ["web-b-8vc7", 9, "we…b-8vc7"],
  ["web-b-8vc7", 1, "…"],
])("%s in %i columns", (name, columns, expected) => {
  expect(cutName(name, columns)).toBe(expected);
  expect(expected.length).toBeLessThanOrEqual(columns);
});

it.each([
  [
    "2 nodes are on hold (gke-prod-spot-pool-n2d-standard-8-3f9ac21b-x7km, n7)",
    "2 nodes are on hold (gke-prod-spo…3f9ac21b-x7km, n7)",
  ],
  [
    "ip-10-0-12-34.eu-west-1.compute.internal leaves at 2026-11-20T22:00:00.000Z.",
    "ip-10-0-12-34.eu-west-1.c… leaves at 2026-11-20T22:00:00.000Z.",
  ],
  // The pod that blocks a drain is looked up by its whole name.
  [
    "blocked by shop-checkout-production/checkout-api-postgresql-primary-0: no",
    "blocked by shop-checkout-production/checkout-api-postgresql-primary-0: no",
  ],
  ["spec.nodeSelector: found 5", "spec.nodeSelector: found 5"],
])("a sentence is read at one glance: %s", (text, expected) => {
  expect(withCutNames(text, 26)).toBe(expected);
});
