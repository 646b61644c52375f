import { expect, it } from "vitest";
import { nameParts } from "../../src/web/node-name.tsx";

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
