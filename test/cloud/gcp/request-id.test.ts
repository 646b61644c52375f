import { expect, it } from "vitest";
import { checkRequestId, requestIdAfter } from "../../../src/cloud/gcp/request-id.ts";

const uid = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

it.each([
  [0, uid],
  [1, "6f9619ff-8b86-4d01-b42d-00cf4fc96500"],
  [2, "6f9619ff-8b86-4d01-b42d-00cf4fc96501"],
])("after %i failures the request id is %s", (failures, expected) => {
  expect(requestIdAfter(uid, failures)).toBe(expected);
  expect(() => checkRequestId(expected)).not.toThrow();
});

it("the count wraps round inside the last group", () => {
  const last = "6f9619ff-8b86-4d01-b42d-ffffffffffff";
  expect(requestIdAfter(last, 1)).toBe("6f9619ff-8b86-4d01-b42d-000000000000");
});
