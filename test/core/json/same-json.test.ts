import { expect, it } from "vitest";
import { isSameJson } from "../../../src/core/json/json-field.ts";

const record = { name: "mute", undo: { targets: [{ id: "i-1", port: 80 }] } };

it.each([
  [
    "fields in another order",
    record,
    { undo: { targets: [{ port: 80, id: "i-1" }] }, name: "mute" },
  ],
  ["what is undefined and what is absent", record, { ...record, detail: undefined }],
  ["two lists without items", [], []],
  ["null", { a: null }, { a: null }],
])("isSameJson holds for %s", (_, one, other) => {
  expect([isSameJson(one, other), isSameJson(other, one)]).toEqual([true, true]);
});

it.each([
  ["a field more", record, { ...record, detail: "" }],
  ["another value in a list", record, { ...record, undo: { targets: [{ id: "i-1", port: 81 }] } }],
  ["an item more", [1], [1, 2]],
  ["another order of items", [1, 2], [2, 1]],
  ["a list and an object", [], {}],
  ["null and an object", { a: null }, { a: {} }],
  ["null and nothing", { a: null }, {}],
  ["a number and its text", 1, "1"],
])("isSameJson does not hold for %s", (_, one, other) => {
  expect([isSameJson(one, other), isSameJson(other, one)]).toEqual([false, false]);
});
