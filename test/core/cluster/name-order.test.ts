import { expect, it } from "vitest";
import { compareNames } from "../../../src/core/cluster/name-order.ts";

it.each([
  [
    ["n10", "n2", "n1"],
    ["n1", "n2", "n10"],
  ],
  [
    ["pool-b-1", "pool-a-11", "pool-a-9"],
    ["pool-a-9", "pool-a-11", "pool-b-1"],
  ],
  [
    ["ip-10-0-10-1.ec2.internal", "ip-10-0-9-200.ec2.internal", "ip-10-0-9-31.ec2.internal"],
    ["ip-10-0-9-31.ec2.internal", "ip-10-0-9-200.ec2.internal", "ip-10-0-10-1.ec2.internal"],
  ],
  [
    ["us-east-1b", "us-east-1a", "eu-west-10a", "eu-west-2c"],
    ["eu-west-2c", "eu-west-10a", "us-east-1a", "us-east-1b"],
  ],
  // Equal as numbers, and yet two names: always in the same order.
  [
    ["n1", "n01"],
    ["n01", "n1"],
  ],
  [
    ["n01", "n1"],
    ["n01", "n1"],
  ],
  [
    ["", "n1"],
    ["", "n1"],
  ],
])("%j is read in the order %j", (names, expected) => {
  expect(names.toSorted(compareNames)).toEqual(expected);
});
