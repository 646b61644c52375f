import { expect, it } from "vitest";
import { readObservedLease } from "../../../src/kube/lease/live-lease.ts";

const place = { namespace: "lastcall-system", name: "lastcall" };
const reading = (body: unknown) =>
  readObservedLease({ send: async () => ({ status: 404, body }) }, place);

it("a Lease that does not exist says nothing about the controllers", async () => {
  const missing = { kind: "Status", code: 404, reason: "NotFound", message: "not found" };
  expect(await reading(missing)).toBeUndefined();
});

it("a Lease is not missing because a proxy answers 404", async () => {
  const read = reading("404 page not found\n");
  await expect(read).rejects.toMatchObject({ code: "API_ANSWER_INVALID" });
});
