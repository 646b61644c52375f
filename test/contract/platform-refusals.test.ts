import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { QueueMessage } from "../../src/cloud/aws/queue/message-handler.ts";
import { hours, millis, seconds } from "../../src/core/time/time.ts";
import { ArmServer, cluster, scaleSet } from "../support/arm-server.ts";
import { AutoScalingServer } from "../support/auto-scaling-server.ts";
import { AwsMetadataServer } from "../support/aws-metadata-server.ts";
import { AzureMetadataServer } from "../support/azure-metadata-server.ts";
import { type ComputeServer, startComputeServer } from "../support/compute-server.ts";
import { Ec2Fleet } from "../support/ec2-fleet.ts";
import { Ec2Server } from "../support/ec2-server.ts";
import { entraResponse } from "../support/entra-service.ts";
import { FakeQueue } from "../support/fake-queue.ts";
import { GcpMetadataServer } from "../support/gcp-metadata-server.ts";
import { LambdaServer } from "../support/lambda-server.ts";
import { LoadBalancerServer } from "../support/load-balancer-server.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { NetworkServer } from "../support/network-server.ts";
import { SnsServer } from "../support/sns-server.ts";

/**
 * Our servers refuse what the platforms refuse, so that no test can pass with a request that a
 * platform would not accept. test/support/README.md lists each refusal with its source.
 */

const clock = new ManualClock();
const now = () => clock.now();

type Query = Readonly<Record<string, string | number>>;

async function answerOf(url: string, how: RequestInit = {}): Promise<string> {
  const answer = await fetch(url, how);
  return `${answer.status} ${answer.headers.get("x-amzn-errortype") ?? ""}${await answer.text()}`;
}

describe("Compute Engine", () => {
  let server: ComputeServer;
  beforeAll(async () => {
    server = await startComputeServer({ clock });
  });
  afterAll(() => server.close());

  const list = (query: Query) => {
    const words = new URLSearchParams(Object.entries(query).map(([key, one]) => [key, `${one}`]));
    return answerOf(`${server.endpoint}/compute/v1/projects/project1/zones/z/operations?${words}`);
  };

  it.each([
    ["a filter with an order", { filter: 'name = "a"', orderBy: "name" }, "filter and sort order"],
    ["another order than by name or by time", { orderBy: "insertTime desc" }, "field 'orderBy'"],
    ["a page of more than 500 items", { maxResults: 501 }, "field 'maxResults'"],
    ["a field that there is none", { fields: "items(name,size)" }, "Invalid field selection size"],
  ])("refuses %s", async (_, query, words) => {
    const answer = await list(query);
    expect(answer).toMatch(/^400 /);
    expect(answer).toContain(words);
  });

  it.each(["00000000-0000-0000-0000-000000000000", "lastcall-1"])(
    "refuses the request id %s",
    async (requestId) => {
      const path = `/compute/v1/projects/project1/zones/z/instances/n?requestId=${requestId}`;
      const answer = await answerOf(`${server.endpoint}${path}`, { method: "DELETE" });
      expect(answer).toContain("Must be a valid UUID");
    },
  );
});

const ids = (name: string, count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, place) => [`${name}.${place + 1}`, "i-0a"]));

interface QueryServer {
  readonly url: string;
  start(): Promise<unknown>;
  stop(): Promise<void>;
}

async function refusalBy(server: QueryServer, asked: Query): Promise<string> {
  await server.start();
  try {
    const form = Object.entries(asked).map(([key, one]) => [key, `${one}`]);
    const body = new URLSearchParams(form);
    const answer = await answerOf(server.url, { method: "POST", body });
    return /<Code>(.*?)<\/Code>/.exec(answer)?.[1] ?? answer;
  } finally {
    await server.stop();
  }
}

const ec2 = { Version: "2016-11-15" };
const groups = { Version: "2011-01-01" };

describe.each([
  ["lists", () => new Ec2Server()],
  ["instances", () => new Ec2Fleet(clock)],
  ["networks", () => new NetworkServer()],
])("EC2, as far as %s need it,", (_, make) => {
  it.each([
    ["more than 200 values of filters", ids("Filter.1.Value", 201), "FilterLimitExceeded"],
    ["a page of fewer than 5 items", { MaxResults: 4 }, "InvalidParameterValue"],
    ["a page of more than 1000 items", { MaxResults: 1001 }, "InvalidParameterValue"],
    [
      "a page size with instance ids",
      { MaxResults: 5, "InstanceId.1": "i-0a" },
      "InvalidParameterCombination",
    ],
  ])("refuses %s", async (_, asked, code) => {
    const query: Query = { Action: "DescribeInstances", ...ec2, ...asked };
    expect(await refusalBy(make(), query)).toBe(code);
  });
});

describe.each([
  ["releases", () => new Ec2Fleet(clock)],
  ["lifecycle hooks", () => new AutoScalingServer()],
])("Auto Scaling, as far as %s need it,", (_, make) => {
  const instances = "DescribeAutoScalingInstances";
  const [named, names] = ["DescribeAutoScalingGroups", "AutoScalingGroupNames.member"];
  it.each([
    ["more than 50 instances", { Action: instances, ...ids("InstanceIds.member", 51) }],
    ["a page of more than 50 instances", { Action: instances, MaxRecords: 51 }],
    ["a page of more than 100 groups", { Action: named, MaxRecords: 101 }],
    ["more names of groups than fit on a page", { Action: named, ...ids(names, 51) }],
    ["more than 100 names of groups", { Action: named, MaxRecords: 100, ...ids(names, 101) }],
    ["to detach more than 20", { Action: "DetachInstances", ...ids("InstanceIds.member", 21) }],
  ])("refuses %s", async (_, asked) => {
    expect(await refusalBy(make(), { ...groups, ...(asked as Query) })).toBe("ValidationError");
  });
});

describe("Elastic Load Balancing", () => {
  it.each([
    [401, "DescribeTargetGroups", "2015-12-01"],
    [0, "DescribeTargetGroups", "2015-12-01"],
    [401, "DescribeLoadBalancers", "2012-06-01"],
  ])("refuses a page size of %i for %s", async (PageSize, Action, Version) => {
    const asked = { PageSize, Action, Version };
    expect(await refusalBy(new LoadBalancerServer(), asked)).toBe("ValidationError");
  });

  it("refuses the tags of more than 20 target groups", async () => {
    const asked = { Action: "DescribeTags", Version: "2015-12-01" };
    const query: Query = { ...asked, ...ids("ResourceArns.member", 21) };
    expect(await refusalBy(new LoadBalancerServer(), query)).toBe("ValidationError");
  });
});

describe("Elastic Load Balancing, for targets,", () => {
  const members = (count: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, place) => [
        `Targets.member.${place + 1}.Id`,
        `i-0${place.toString(16)}`,
      ]),
    );
  it.each(["RegisterTargets", "DeregisterTargets"])(
    "refuses %s with more than 200 at once",
    async (Action) => {
      const server = new LoadBalancerServer();
      const TargetGroupArn = server.addGroup("web").arn;
      const asked: Query = { Action, TargetGroupArn, Version: "2015-12-01", ...members(201) };
      expect(await refusalBy(server, asked)).toBe("ServiceUnavailable");
    },
  );

  it("refuses to register more than the quota of a group", async () => {
    const server = new LoadBalancerServer();
    const targets = Array.from({ length: 1000 }, (_, place) => ({ id: `i-1${place}`, port: 80 }));
    const TargetGroupArn = server.addGroup("web", { targets }).arn;
    const asked = { Action: "RegisterTargets", TargetGroupArn, Version: "2015-12-01" };
    expect(await refusalBy(server, { ...asked, ...members(1) })).toBe("TooManyTargets");
  });
});

describe("SQS, as far as its fake stands for it,", () => {
  const never = new AbortController().signal;
  const received = async () => {
    const queue = new FakeQueue(clock);
    queue.send("a");
    const [message] = await queue.receive(never);
    return { queue, message: message as QueueMessage };
  };

  it("does not remove a message by an older receipt", async () => {
    const { queue, message } = await received();
    await queue.hide([message], millis(0));
    const [again] = await queue.receive(never);
    await queue.remove([message]);
    expect(queue.size).toBe(1);
    await queue.remove([again as QueueMessage]);
    expect(queue.size).toBe(0);
  });

  it("hides no message for more than 12 hours, nor one that is not in flight", async () => {
    const { queue, message } = await received();
    await queue.hide([message], millis(hours(12) + 1));
    await queue.hide([message], millis(0));
    expect(queue.shown).toBe(1);
    await queue.hide([message], seconds(60));
    expect(queue.shown).toBe(1);
  });
});

describe("SNS", () => {
  it.each([
    ["a subject of 100 characters", { Subject: "a".repeat(100), Message: "m" }],
    ["a subject with a line break", { Subject: "a\nb", Message: "m" }],
    ["a message of more than 256 KiB", { Message: "a".repeat(262_145) }],
    ["no message", {}],
  ])("refuses %s", async (_, asked) => {
    const server = new SnsServer();
    server.topics.add("arn:aws:sns:eu-west-1:123456789012:t");
    const topic = { Action: "Publish", TopicArn: "arn:aws:sns:eu-west-1:123456789012:t" };
    expect(await refusalBy(server, { ...topic, ...asked })).toBe("InvalidParameter");
  });

  it("refuses a message without a group to a FIFO topic", async () => {
    const server = new SnsServer();
    server.topics.add("arn:aws:sns:eu-west-1:123456789012:t.fifo");
    const topic = { Action: "Publish", TopicArn: "arn:aws:sns:eu-west-1:123456789012:t.fifo" };
    expect(await refusalBy(server, { ...topic, Message: "m" })).toBe("InvalidParameter");
  });
});

describe("Lambda", () => {
  it.each([
    ["an event of more than 1 MB", JSON.stringify("a".repeat(1_048_576)), "413 RequestTooLarge"],
    ["an event that is not JSON", "{", "400 InvalidRequestContent"],
  ])("refuses %s", async (_, body, words) => {
    const server = await new LambdaServer().start();
    server.functions.add("f");
    const headers = { "x-amz-invocation-type": "Event" };
    const url = `${server.url}/2015-03-31/functions/f/invocations`;
    expect(await answerOf(url, { method: "POST", headers, body })).toContain(words);
    await server.stop();
  });
});

describe("Azure Resource Manager", () => {
  it("refuses a request without api-version", async () => {
    const server = await new ArmServer(clock).start();
    const answer = await answerOf(`${server.url}${cluster}/agentPools/spot`);
    expect(answer).toMatch(/^400 .*MissingApiVersionParameter/);
    await server.close();
  });

  it("names the missing scale set of a machine, and the missing resource group", async () => {
    const server = await new ArmServer(clock).start();
    const machine = `${server.url}${scaleSet}/virtualMachines/0?api-version=2024-07-01`;
    server.hasScaleSet = false;
    expect(await answerOf(machine)).toMatch(/^404 .*ParentResourceNotFound/);
    server.hasNodeGroup = false;
    expect(await answerOf(machine)).toMatch(/^404 .*ResourceGroupNotFound/);
    await server.close();
  });
});

describe("Entra's token service", () => {
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const asked = {
    ...{ client_id: "c", client_assertion: "jwt", grant_type: "client_credentials" },
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    scope: "https://management.azure.com/.default",
  };
  it.each([
    ["a request without an assertion", { client_assertion: "" }, 401, "AADSTS7000218"],
    ["another type of assertion", { client_assertion_type: "jwt" }, 401, "AADSTS7000218"],
    ["a request without a grant type", { grant_type: "" }, 400, "AADSTS900144"],
    ["a scope that is not /.default", { scope: "user.read" }, 400, "AADSTS70011"],
  ])("refuses %s", async (_, other, status, code) => {
    const url = "https://login.microsoftonline.com/t/oauth2/v2.0/token";
    const answer = (fields: object) =>
      entraResponse(
        { url, body: new URLSearchParams({ ...asked, ...fields }), headers: new Headers(form) },
        "token",
      );
    expect(answer({}).status).toBe(200);
    expect(answer(other).status).toBe(status);
    expect(await answer(other).text()).toContain(code);
  });
});

describe("a metadata service", () => {
  it.each([
    ["EC2's", "no token", AwsMetadataServer, "/latest/meta-data/instance-id", {}, 401],
    [
      ...(["EC2's", "a token for more than six hours", AwsMetadataServer] as const),
      ...(["/latest/api/token", { "x-aws-ec2-metadata-token-ttl-seconds": "21601" }, 400] as const),
    ],
    [
      ...(["Google's", "no Metadata-Flavor", GcpMetadataServer] as const),
      ...(["/computeMetadata/v1/instance/id", {}, 403] as const),
    ],
    [
      ...(["Azure's", "no Metadata header", AzureMetadataServer] as const),
      ...(["/metadata/scheduledevents?api-version=2020-07-01", {}, 400] as const),
    ],
    [
      ...(["Azure's", "no api-version", AzureMetadataServer] as const),
      ...(["/metadata/scheduledevents", { metadata: "true" }, 400] as const),
    ],
  ])("%s refuses %s", async (_, _what, Server, path, headers, status) => {
    const server = await new Server(now).start();
    const method = path === "/latest/api/token" ? "PUT" : "GET";
    const answer = await answerOf(`${server.url}${path}`, { method, headers: { ...headers } });
    expect(answer).toMatch(new RegExp(`^${status} `));
    await server.stop();
  });
});
