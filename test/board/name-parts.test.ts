import { expect, it } from "vitest";
import { cutName, nameParts } from "../../src/board/name-parts.ts";

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
