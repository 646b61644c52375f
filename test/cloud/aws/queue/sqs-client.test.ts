import { SQSClient } from "@aws-sdk/client-sqs";
import { describe, expect, it } from "vitest";
import { regionOf } from "../../../../src/cloud/aws/queue/sqs-client.ts";

describe("the region of a queue", () => {
  it.each([
    ["https://sqs.eu-west-1.amazonaws.com/123456789012/lastcall", "eu-west-1"],
    ["https://sqs-fips.us-gov-west-1.amazonaws.com/123456789012/lastcall", "us-gov-west-1"],
    ["https://sqs.cn-north-1.amazonaws.com.cn/123456789012/lastcall", "cn-north-1"],
    ["https://sqs.eu-west-1.api.aws/123456789012/lastcall", "eu-west-1"],
    ["https://ap-southeast-2.queue.amazonaws.com/123456789012/lastcall", "ap-southeast-2"],
    ["https://vpce-0a1b-2c3d.sqs.eu-central-1.vpce.amazonaws.com/123456789012/q", "eu-central-1"],
    ["https://sqs.eusc-de-east-1.amazonaws.eu/123456789012/lastcall", "eusc-de-east-1"],
    // The environment then decides.
    ["https://queue.amazonaws.com/123456789012/lastcall", undefined],
    ["http://127.0.0.1:5000/123456789012/lastcall", undefined],
    ["http://sqs.eu-west-1.localhost.localstack.cloud:4566/000000000000/q", undefined],
  ])("with the URL %s is %s", (url, region) => {
    expect(regionOf(url)).toBe(region);
  });

  it.each([
    ...["eu-west-1", "cn-northwest-1", "us-gov-west-1", "eusc-de-east-1", "us-iso-east-1"],
    ...["us-isob-east-1", "eu-isoe-west-1", "us-isof-south-1"],
  ])("is found in both endpoints of the AWS SDK for %s", (region) => {
    const { endpointProvider } = new SQSClient({ region }).config;
    const origins = [false, true].map(
      (isDual) =>
        endpointProvider?.({ Region: region, UseFIPS: false, UseDualStack: isDual }).url.origin,
    );
    const regions = origins.map((origin) => regionOf(`${origin}/123456789012/lastcall`));
    expect(regions, origins.join()).toEqual([region, region]);
  });
});
