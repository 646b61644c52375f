import { LastcallError } from "../../src/errors.ts";
import { FakeEc2 } from "../support/fake-ec2.ts";
import { ec2Contract } from "./ec2.contract.ts";

const codes = {
  Unreachable: "CLOUD_UNREACHABLE",
  RateLimited: "CLOUD_RATE_LIMITED",
  RightMissing: "CLOUD_RIGHT_MISSING",
} as const;

ec2Contract("the in-memory EC2", async () => {
  const ec2 = new FakeEc2();
  return {
    ec2,
    schedule: (...events) => ec2.events.push(...events),
    operate: () => undefined,
    tag: (instance, tags) => ec2.tags.set(instance, tags),
    fail: (fault) => {
      ec2.fault = new LastcallError(codes[fault], "Cannot ask EC2: a test has it fail");
    },
    heal: () => {
      ec2.fault = undefined;
    },
    close: async () => {},
  };
});
