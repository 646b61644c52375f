import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { handler } from "../../../src/cli/lambda-main.ts";
import { useAwsEnvironment } from "../../support/aws-environment.ts";
import { NetworkServer, type ServedInstance } from "../../support/network-server.ts";
import { SnsServer } from "../../support/sns-server.ts";

const topicArn = "arn:aws:sns:eu-west-1:123456789012:spot";
useAwsEnvironment();

describe("with LASTCALL_AWS_MANAGED_TAG, the Lambda responder", () => {
  let ec2: NetworkServer;
  let sns: SnsServer;
  let instance: ServedInstance;
  let invoke: (event: unknown) => ReturnType<typeof handler>;

  beforeEach(async () => {
    [ec2, sns] = await Promise.all([new NetworkServer().start(), new SnsServer().start()]);
    process.env.AWS_ENDPOINT_URL_EC2 = ec2.url;
    process.env.AWS_ENDPOINT_URL_SNS = sns.url;
    process.env.LASTCALL_ACTIONS = JSON.stringify([
      { name: "tell", at: "AtEnd", sns: { topicArn } },
    ]);
    process.env.LASTCALL_AWS_MANAGED_TAG = "team=spot";
    sns.topics.add(topicArn);
    instance = ec2.addInstance(1);
    vi.spyOn(console, "error").mockImplementation(() => {});
    // One process for all events of a test, as Lambda keeps it while events come.
    vi.resetModules();
    const { handler: warm } = await import("../../../src/cli/lambda-main.ts");
    invoke = (event) => warm(event, { getRemainingTimeInMillis: () => 30_000 });
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    delete process.env.LASTCALL_AWS_MANAGED_TAG;
    await Promise.all([ec2, sns].map((server) => server.stop()));
  });

  const interruption = () => ({
    ...{ version: "0", id: "12345678-1234-1234-1234-123456789012", source: "aws.ec2" },
    "detail-type": "EC2 Spot Instance Interruption Warning",
    ...{ account: "123456789012", time: new Date().toISOString(), region: "eu-west-1" },
    detail: { "instance-id": instance.id, "instance-action": "terminate" },
  });

  it("ignores an event of EventBridge for a machine without the tag", async () => {
    const answer = await invoke(interruption());
    expect(answer).toMatchObject({ instanceId: instance.id, actions: [] });
    expect(answer.summary).toContain("does not have the tag team=spot");
    expect(sns.published).toEqual([]);
  });

  it("acts on a machine that got the tag after an event that it ignored", async () => {
    expect((await invoke(interruption())).actions).toEqual([]);
    ec2.tags.set(instance.id, { team: "spot" });
    expect((await invoke(interruption())).actions?.[0]).toMatchObject({ state: "Done" });
  });

  it("acts on a machine with the tag, and on any that an invocation names", async () => {
    ec2.tags.set(instance.id, { team: "spot" });
    expect((await invoke(interruption())).actions?.[0]).toMatchObject({ state: "Done" });
    const other = ec2.addInstance(2);
    expect((await invoke({ instanceId: other.id })).actions?.[0]).toMatchObject({ state: "Done" });
  });

  it.each(["denied", "throttled"])(
    "touches no machine while the request for its tags is %s, and fails, so that Lambda tries again",
    async (how) => {
      if (how === "denied") ec2.denied.add("DescribeTags");
      if (how === "throttled") ec2.fault = "RateLimited";
      await expect(invoke(interruption())).rejects.toThrow(/DescribeTags/);
      expect(sns.published).toEqual([]);
      ec2.denied.clear();
      ec2.fault = undefined;
      ec2.tags.set(instance.id, { team: "spot" });
      expect((await invoke(interruption())).actions?.[0]).toMatchObject({ state: "Done" });
    },
  );
});
