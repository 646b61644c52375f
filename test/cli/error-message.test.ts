import { expect, it } from "vitest";
import { messageOf } from "../../src/errors.ts";

it.each([
  [new TypeError("a mistake"), "a mistake"],
  [{ kind: "Status", message: "the name is invalid" }, "the name is invalid"],
  [{ message: 3, toString: (): string => "three" }, "three"],
  ["only text", "only text"],
  [null, "null"],
  [undefined, "undefined"],
])("the message of the thrown %j is %j", (thrown, message) => {
  expect(messageOf(thrown)).toBe(message);
});
