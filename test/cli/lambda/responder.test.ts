import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useAwsEnvironment } from "../../support/aws-environment.ts";
import { LoadBalancerServer } from "../../support/load-balancer-server.ts";
import { NetworkServer, type ServedInstance } from "../../support/network-server.ts";
import { ScriptedServer } from "../../support/scripted-server.ts";
import { SnsServer } from "../../support/sns-server.ts";
import { stopTimers } from "../../support/stopped-timers.ts";
import { waitUntil } from "../../support/wait-until.ts";

const topicArn = "arn:aws:sns:eu-west-1:123456789012:spot";
const actions = [
  { name: "targets", at: "AtNotice", deregisterTargets: { wait: false } },
  { name: "quarantine", at: "AtNotice", replaceSecurityGroups: { groupIds: ["sg-0abc"] } },
  { name: "maintenance", at: "AtNotice", causes: ["ScheduledMaintenance"], detach: {} },
  { name: "tell", at: "AtEnd", sns: { topicArn, subject: "{{node}} {{outcome}}" } },
];
useAwsEnvironment();

describe("the Lambda responder", () => {
  let balancers: LoadBalancerServer;
  let ec2: NetworkServer;
  let sns: SnsServer;
  let instance: ServedInstance;
  const logged: string[] = [];

  beforeEach(async () => {
    [balancers, ec2, sns] = [new LoadBalancerServer(), new NetworkServer(), new SnsServer()];
    await Promise.all([balancers.start(), ec2.start(), sns.start()]);
    process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2 = balancers.url;
    process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING = balancers.url;
    process.env.AWS_ENDPOINT_URL_EC2 = ec2.url;
    process.env.AWS_ENDPOINT_URL_SNS = sns.url;
    process.env.LASTCALL_ACTIONS = JSON.stringify(actions);
    delete process.env.LASTCALL_EVENT_FIELDS;
    sns.topics.add(topicArn);
    for (const id of ["sg-0abc", "sg-nodes"]) ec2.securityGroups.set(id, "vpc-a");
    instance = ec2.addInstance(1);
    ec2.addInterface(instance, { addresses: ["10.0.1.7"], prefixes: ["10.0.2.0/28"] });
    ec2.addInterface(instance);
    balancers.addGroup("web", { targets: [{ id: instance.id, port: 80 }] });
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.2.5", port: 8080 }] });
    logged.splice(0);
    vi.spyOn(console, "error").mockImplementation((line) => logged.push(String(line)));
  });
  afterEach(async () => {
    vi.useRealTimers();
    vi.restoreAllMocks();
    await Promise.all([balancers.stop(), ec2.stop(), sns.stop()]);
  });

  /** The handler of a process that Lambda has just started. */
  async function cold(): Promise<typeof import("../../../src/cli/lambda-main.ts")["handler"]> {
    vi.resetModules();
    return (await import("../../../src/cli/lambda-main.ts")).handler;
  }

  const invoke = async (event: unknown) =>
    (await cold())(event, { getRemainingTimeInMillis: () => 30_000 });

  const interruption = () => ({
    version: "0",
    id: "12345678-1234-1234-1234-123456789012",
    "detail-type": "EC2 Spot Instance Interruption Warning",
    source: "aws.ec2",
    account: "123456789012",
    time: new Date().toISOString(),
    region: "eu-west-1",
    resources: [`arn:aws:ec2:eu-west-1b:instance/${instance.id}`],
    detail: { "instance-id": instance.id, "instance-action": "terminate" },
  });

  const standing = () => balancers.groups.flatMap((group) => balancers.serving(group));
  const groups = () => ec2.interfaces.map((one) => one.groups.join());

  it("deregisters an interrupted machine, quarantines it and announces it", async () => {
    process.env.LASTCALL_ACTIONS = JSON.stringify([
      { ...actions[0], deregisterTargets: { wait: true } },
      ...actions.slice(1),
    ]);
    for (const group of balancers.groups) group.drainMs = 100;
    const timers = stopTimers();
    const answer = await timers.passUntil(invoke(interruption()));
    // No target is still draining, since the action waits for that.
    expect(balancers.groups.flatMap(({ targets }) => targets)).toEqual([]);
    expect(groups()).toEqual(["sg-0abc", "sg-0abc"]);
    expect(sns.published).toEqual([
      {
        topic: topicArn,
        subject: `${instance.dnsName} Noticed`,
        message: expect.stringMatching(
          /targets .* Done in .*deregistered from 2 groups[\s\S]*quarantine/,
        ),
      },
    ]);
    expect(answer.instanceId).toBe(instance.id);
    expect(answer.actions?.map(({ name, state }) => `${name} ${state}`)).toEqual([
      ...["targets Done", "quarantine Done", "maintenance Skipped", "tell Done"],
    ]);
    expect(answer.summary).toContain(`${instance.dnsName} leaves: SpotInterruption`);
  });

  it("warns if its function has too little time, as with Lambda's default timeout", async () => {
    const handler = await cold();
    await handler(interruption(), { getRemainingTimeInMillis: () => 110_000 });
    expect(logged.join()).not.toContain("time-short");
    await handler(interruption(), { getRemainingTimeInMillis: () => 3000 });
    expect(logged.join()).toMatch(
      /time-short.*3 s left, expected a function with a timeout of 110/,
    );
  });

  it("returns the undo data, which it logs before the change", async () => {
    const answer = await invoke(interruption());
    const undo = {
      networkInterfaces: ec2.interfaces.map(({ id }) => ({ id, groupIds: ["sg-nodes"] })),
    };
    expect(answer.actions?.[1]).toMatchObject({ name: "quarantine", undo });
    expect(answer.actions?.[0]?.undo).toMatchObject({ targets: [{ port: 80 }, { port: 8080 }] });
    const line = logged.findIndex((one) => one.includes("undo-recorded") && one.includes("eni-"));
    const end = logged.findIndex((one) => /action-ended.*quarantine/.test(one));
    expect(line).toBeGreaterThanOrEqual(0);
    expect(line).toBeLessThan(end);
  });

  it("ends in the same state after Lambda's two retries, with no second record", async () => {
    await invoke(interruption());
    const answers = [await invoke(interruption()), await invoke(interruption())];
    expect(standing()).toEqual([]);
    expect(groups()).toEqual(["sg-0abc", "sg-0abc"]);
    expect(ec2.count("ModifyNetworkInterfaceAttribute")).toBe(2);
    for (const { actions: ended = [] } of answers) {
      expect(ended.map(({ undo }) => undo)).toEqual([undefined, undefined, undefined, undefined]);
      expect(ended.map(({ state }) => state)).toEqual(["Done", "Done", "Skipped", "Done"]);
    }
  });

  it("completes an attempt that died halfway", async () => {
    await invoke(interruption());
    const [first, second] = ec2.interfaces;
    if (second) second.groups = ["sg-nodes"];
    const answer = await invoke(interruption());
    expect(groups()).toEqual(["sg-0abc", "sg-0abc"]);
    expect(answer.actions?.[1]?.undo).toEqual({
      networkInterfaces: [{ id: second?.id, groupIds: ["sg-nodes"] }],
    });
    expect(first?.groups).toEqual(["sg-0abc"]);
  });

  it("accepts the controller's invocation with the Node's name and the cause", async () => {
    const deadline = new Date(Date.now() + 60_000).toISOString();
    const cause = "RebalanceRecommendation";
    const answer = await invoke({ instanceId: instance.id, node: "n1", cause, deadline });
    expect(answer.summary).toContain(`n1 leaves: ${cause}`);
    expect(sns.published[0]?.subject).toBe("n1 Noticed");
    expect(ec2.count("DescribeInstances")).toBe(0);
  });

  it.each([['{"instanceId": "spot.id", "node": "host"}'], ["instanceId=spot.id, node=host"]])(
    "accepts another program's invocation by the event fields %s",
    async (fields) => {
      process.env.LASTCALL_EVENT_FIELDS = fields;
      const answer = await invoke({ spot: { id: instance.id }, host: "n7", other: true });
      expect(answer.instanceId).toBe(instance.id);
      expect(sns.published[0]?.subject).toBe("n7 Noticed");
      // Events of EventBridge are still accepted.
      expect((await invoke(interruption())).instanceId).toBe(instance.id);
    },
  );

  it("is deregistered from a group of aws-load-balancer-controller, too", async () => {
    const tags = { "elbv2.k8s.aws/cluster": "main" };
    balancers.addGroup("owned", { tags, targets: [{ id: instance.id, port: 80 }] });
    const { actions: done } = await invoke(interruption());
    expect(done?.find(({ name }) => name === "targets")?.detail).toBe("deregistered from 3 groups");
    expect(standing()).toEqual([]);
  });

  it("accepts an event that SNS forwards", async () => {
    const answer = await invoke({
      Records: [{ Sns: { Message: JSON.stringify(interruption()) } }],
    });
    expect(answer.instanceId).toBe(instance.id);
    expect(standing()).toEqual([]);
  });

  it("accepts the events that SQS forwards, and logs one that cannot be read", async () => {
    const bodies = ["garbage", JSON.stringify(interruption())];
    const answer = await invoke({ Records: bodies.map((body) => ({ body })) });
    expect(answer.instanceId).toBe(instance.id);
    expect(standing()).toEqual([]);
    expect(logged.join()).toMatch(/event-unclear.*another message of the batch cannot be read/);
  });

  it("acts once on an event that a batch contains twice", async () => {
    const body = JSON.stringify(interruption());
    const answer = await invoke({ Records: [{ body }, { body }] });
    expect(answer.others).toBeUndefined();
    expect(sns.published).toHaveLength(1);
  });

  it("acts on an event with the 1970 time of AWS's own samples", async () => {
    const { actions } = await invoke({ ...interruption(), time: "1970-01-01T00:00:00Z" });
    expect(actions?.map(({ state }) => state)).not.toContain("Failed");
    expect(standing()).toEqual([]);
  });

  it("does nothing for an event that terminates no machine", async () => {
    const event = {
      ...interruption(),
      "detail-type": "EC2 Instance State-change Notification",
      detail: { "instance-id": instance.id, state: "running" },
    };
    expect((await invoke(event)).actions).toEqual([]);
    expect(standing()).toHaveLength(2);
  });

  it.each([
    ["nothing", undefined, "LASTCALL_ACTIONS: found nothing"],
    ["not JSON", "[", "LASTCALL_ACTIONS: found"],
    ["an unknown field", '[{"name":"a","at":"AtNotice","snss":{}}]', "spec.actions[0]"],
    [
      "an invalid security group",
      '[{"name":"a","at":"AtNotice","replaceSecurityGroups":{"groupIds":["x"]}}]',
      "groupIds[0]",
    ],
  ])("fails without a change if its actions are %s", async (_, text, message) => {
    if (text === undefined) delete process.env.LASTCALL_ACTIONS;
    else process.env.LASTCALL_ACTIONS = text;
    await expect(invoke(interruption())).rejects.toThrow(message);
    expect(standing()).toHaveLength(2);
  });

  it.each([
    ["no instance", { instanceId: "my-machine" }, /instanceId "my-machine"/],
    ["garbage", "garbage", /Cannot read the invocation/],
    ["an event of S3", { Records: [{ s3: {} }] }, /Cannot read the invocation/],
  ])("rejects an invocation with %s", async (_, event, message) => {
    await expect(invoke(event)).rejects.toThrow(message);
    expect(standing()).toHaveLength(2);
  });

  it("rejects an HTTP request, whose body anybody may have written to a function URL", async () => {
    const request = { version: "2.0", rawPath: "/", body: JSON.stringify(interruption()) };
    await expect(invoke(request)).rejects.toThrow("Cannot read the invocation");
    expect(standing()).toHaveLength(2);
  });

  it("acts despite an unknown cause and an unreadable deadline, and logs both", async () => {
    const answer = await invoke({ instanceId: instance.id, cause: "spot-itn", deadline: "soon" });
    expect(standing()).toEqual([]);
    expect(answer.summary).toContain("leaves: SpotInterruption");
    const unclear = logged.filter((line) => line.includes("event-unclear")).join();
    expect(unclear).toMatch(/deadline .*soon.*cause .*spot-itn/);
  });

  it("runs the other actions if one is denied, and names the permission", async () => {
    process.env.LASTCALL_ACTIONS = JSON.stringify(actions.map((one) => ({ ...one, retries: 0 })));
    balancers.denied.add("DeregisterTargets");
    const answer = await invoke(interruption());
    expect(answer.actions?.[0]).toMatchObject({
      state: "Failed",
      detail: expect.stringContaining("elasticloadbalancing:DeregisterTargets"),
    });
    expect(groups()).toEqual(["sg-0abc", "sg-0abc"]);
    expect(sns.published[0]?.message).toContain("Failed");
  });

  it.each([
    ["being read", "DescribeLoadBalancers"],
    ["deregistering", "DeregisterInstancesFromLoadBalancer"],
  ])(
    "finishes the rest at once if a classic load balancer hangs while %s, and says so",
    async (_, call) => {
      process.env.LASTCALL_ACTIONS = JSON.stringify(actions.map((one) => ({ ...one, retries: 0 })));
      balancers.addClassic("classic", [instance.id]);
      balancers.hanging.add(call);
      const timers = stopTimers();
      const answered = invoke(interruption());
      const isOut = () => standing().length === 0 && groups().every((one) => one === "sg-0abc");
      const out = { what: "it is out of the rest", timeoutMs: 15_000 };
      await timers.passUntil(waitUntil(async () => isOut(), out));
      expect(timers.passedMs).toBeLessThan(3500);
      expect(sns.published).toEqual([]);
      const answer = await timers.passUntil(answered);
      // The client gives the service four seconds.
      expect(timers.passedMs).toBeLessThan(8000);
      expect(answer.actions).toMatchObject([
        { name: "targets", state: "Failed", result: "CLOUD_UNREACHABLE" },
        ...[{ state: "Done" }, { state: "Skipped" }, { state: "Done" }],
      ]);
      expect(sns.published[0]?.message).toContain("Failed (CLOUD_UNREACHABLE)");
    },
  );

  it("still announces after the deadline, but changes nothing", async () => {
    const deadline = new Date(Date.now() - 1000).toISOString();
    const answer = await invoke({ instanceId: instance.id, node: "n1", deadline });
    expect(standing()).toHaveLength(2);
    expect(answer.actions?.[0]).toMatchObject({ state: "Failed" });
    expect(sns.published).toHaveLength(1);
  });

  it("uses an idempotency key per cause, and the same key for a repeated event", async () => {
    const keys: unknown[] = [];
    const hook = await new ScriptedServer(({ headers }, response) => {
      keys.push(headers["idempotency-key"]);
      response.writeHead(200).end();
    }).start();
    const http = { url: `${hook.url}/hook`, body: "{}" };
    process.env.LASTCALL_ACTIONS = JSON.stringify([{ name: "call", at: "AtNotice", http }]);
    process.env.LASTCALL_ACTION_HOSTS = "127.0.0.1";
    const rebalance = { instanceId: instance.id, node: "n1", cause: "RebalanceRecommendation" };
    await invoke(rebalance);
    await invoke(rebalance);
    await invoke(interruption());
    expect(new Set(keys.slice(0, 2)).size).toBe(1);
    expect(new Set(keys).size).toBe(2);
    await hook.stop();
    delete process.env.LASTCALL_ACTION_HOSTS;
  });

  it.each([
    ["alone", "LASTCALL_SECRET_WEB_HOOK_TOKEN", "s3cr3t"],
    ["among others", "LASTCALL_SECRETS", '{"LASTCALL_SECRET_WEB_HOOK_TOKEN": "s3cr3t"}'],
  ])("calls a webhook on an allowed host, with a secret %s in %s", async (_, name, value) => {
    const seen: string[] = [];
    const hook = await new ScriptedServer(({ headers, body }, response) => {
      seen.push(`${headers.authorization} ${body}`);
      response.writeHead(200).end();
    }).start();
    const http = {
      url: `${hook.url}/hook`,
      body: '{"node":"{{node}}"}',
      headers: [
        {
          name: "authorization",
          value: "Bearer ",
          secretRef: { name: "web-hook", key: "token" },
        },
      ],
    };
    process.env.LASTCALL_ACTIONS = JSON.stringify([{ name: "call", at: "AtEnd", http }]);
    process.env[name] = value;
    process.env.LASTCALL_ACTION_HOSTS = "127.0.0.1";
    const answer = await invoke({ instanceId: instance.id, node: "n1" });
    expect(answer.actions).toMatchObject([{ name: "call", state: "Done" }]);
    expect(seen).toEqual(['Bearer s3cr3t {"node":"n1"}']);
    expect(logged.join()).not.toContain("s3cr3t");
    delete process.env.LASTCALL_ACTION_HOSTS;
    delete process.env[name];
    const refused = await invoke({ instanceId: instance.id, node: "n1" });
    expect(refused.actions).toMatchObject([{ state: "Failed" }]);
    expect(seen).toHaveLength(1);
    await hook.stop();
  });

  it("runs the other actions if LASTCALL_ACTION_HOSTS is invalid, and names it", async () => {
    const hook = { name: "hook", at: "AtNotice", http: { url: "https://hooks.example/x" } };
    process.env.LASTCALL_ACTIONS = JSON.stringify([hook, ...actions]);
    process.env.LASTCALL_ACTION_HOSTS = "https://hooks.example";
    const answer = await invoke(interruption());
    delete process.env.LASTCALL_ACTION_HOSTS;
    expect(answer.actions?.map(({ name, state }) => `${name} ${state}`)).toEqual([
      ...["hook Failed", "targets Done", "quarantine Done", "maintenance Skipped", "tell Done"],
    ]);
    expect(answer.actions?.[0]).toMatchObject({
      ...{
        result: "CONFIG_INVALID",
        detail: expect.stringMatching(/^Cannot use LASTCALL_ACTION_HOSTS: /),
      },
    });
  });
});
