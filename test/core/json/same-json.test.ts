import { expect, it } from "vitest";
import { isSameJson } from "../../../src/core/json/json-field.ts";

const record = { name: "mute", undo: { targets: [{ id: "i-1", port: 80 }] } };

it.each([
  [
    "fields in another order",
    record,
    { undo: { targets: [{ port: 80, id: "i-1" }] }, name: "mute" },
  ],
  ["undefined and absent fields", record, { ...record, detail: undefined }],
  ["two lists without items", [], []],
  ["null", { a: null }, { a: null }],
])("isSameJson holds for %s", (_, one, other) => {
  expect([isSameJson(one, other), isSameJson(other, one)]).toEqual([true, true]);
});

it.each([
  ["an extra field", record, { ...record, detail: "" }],
  ["another value in a list", record, { ...record, undo: { targets: [{ id: "i-1", port: 81 }] } }],
  ["an extra item", [1], [1, 2]],
  ["items in another order", [1, 2], [2, 1]],
  ["a list and an object", [], {}],
  ["null and an object", { a: null }, { a: {} }],
  ["null and nothing", { a: null }, {}],
  ["a number and its string", 1, "1"],
])("isSameJson does not hold for %s", (_, one, other) => {
  expect([isSameJson(one, other), isSameJson(other, one)]).toEqual([false, false]);
});
