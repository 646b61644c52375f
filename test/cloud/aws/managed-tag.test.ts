import { describe, expect, it } from "vitest";
import { parseManagedTag } from "../../../src/cloud/aws/ec2-machine.ts";

describe("the tag of managed instances", () => {
  it.each([
    ["team", { key: "team", value: undefined }],
    ["team=", { key: "team", value: "" }],
    ["team=a", { key: "team", value: "a" }],
    ["team=a=b", { key: "team", value: "a=b" }],
    ["kubernetes.io/cluster/x y", { key: "kubernetes.io/cluster/x y", value: undefined }],
    [`${"k".repeat(128)}=${"v".repeat(256)}`, { key: "k".repeat(128), value: "v".repeat(256) }],
  ])("%s is a key with an optional value", (text, tag) => {
    expect(parseManagedTag(text)).toEqual(tag);
  });

  it.each([["=a"], [" =a"], ["k".repeat(129)], [`k=${"v".repeat(257)}`]])(
    "%s is rejected in one sentence that names the option",
    (text) => {
      const refused = { code: "CONFIG_INVALID", exitCode: 2 };
      expect(() => parseManagedTag(text)).toThrow(expect.objectContaining(refused));
      expect(() => parseManagedTag(text)).toThrow(
        /^Cannot use --aws-managed-tag: found .{1,70}, expected KEY/,
      );
    },
  );
});
