import { describe, expect, it } from "vitest";
import { ClassicLoadBalancerClient } from "../../../../src/cloud/aws/actions/classic-load-balancer-client.ts";
import { TargetGroupClient } from "../../../../src/cloud/aws/actions/target-group-client.ts";
import {
  type TrafficWorld,
  trafficGroupsContract,
} from "../../../contract/traffic-groups.contract.ts";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import { LoadBalancerServer } from "../../../support/load-balancer-server.ts";
import { waitUntil } from "../../../support/wait-until.ts";

const never = new AbortController().signal;
const one = "i-00000000000000001";
const two = "i-00000000000000002";
useAwsEnvironment();

async function serve() {
  const time = { nowMs: 0 };
  const server = await new LoadBalancerServer(() => time.nowMs).start();
  process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2 = server.url;
  process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING = server.url;
  server.pageSize = 10;
  return { server, time };
}

function sideOf({ server, time }: Awaited<ReturnType<typeof serve>>) {
  return {
    terminate: (instance: string) => {
      server.terminated.add(instance);
    },
    omit: (what: Parameters<TrafficWorld["omit"]>[0]) => {
      server.listless = what;
    },
    pass: (spanMs: number) => {
      time.nowMs += spanMs;
    },
    fail: (fault: Parameters<TrafficWorld["fail"]>[0]) => {
      server.fault = fault;
    },
    heal: () => {
      server.fault = undefined;
    },
    close: () => server.stop(),
  };
}

trafficGroupsContract("the AWS SDK client for target groups", async () => {
  const served = await serve();
  const { server } = served;
  return {
    ...sideOf(served),
    groups: new TargetGroupClient({ region: "eu-west-1" }),
    add: (name, instances, drainMs = 0) => {
      const targets = instances.map((id) => ({ id, port: 8080 }));
      return server.addGroup(name, { drainMs, targets }).arn;
    },
    serving: (id) => {
      const group = server.groups.find(({ arn }) => arn === id);
      return group === undefined ? [] : server.serving(group).map((one) => one.split(":")[0] ?? "");
    },
  };
});

trafficGroupsContract("the AWS SDK client for classic load balancers", async () => {
  const served = await serve();
  const { server } = served;
  return {
    ...sideOf(served),
    groups: new ClassicLoadBalancerClient({ region: "eu-west-1" }),
    add: (name, instances, drainMs = 0) => server.addClassic(name, instances, drainMs).name,
    serving: (id) => [...(server.classics.find(({ name }) => name === id)?.instances ?? [])],
  };
});

it.each([
  [TargetGroupClient, "DescribeTargetGroups"],
  [ClassicLoadBalancerClient, "DescribeLoadBalancers"],
])("%o reads no page twice if that names itself as the next one", async (Client, call) => {
  const { server } = await serve();
  server.addGroup("g");
  server.addClassic("c", []);
  server.pageSize = 0;
  const read = new Client({ region: "eu-west-1" }).read({ onError: () => {} }, never);
  await expect(read).rejects.toMatchObject({ code: "CLOUD_UNREACHABLE" });
  expect(server.count(call)).toBe(2);
  await server.stop();
});

describe("ClassicLoadBalancerClient", () => {
  it("reports a machine that does not exist as gone, but never for others beside it", async () => {
    const { server } = await serve();
    const groups = new ClassicLoadBalancerClient({ region: "eu-west-1" });
    const { instances } = server.addClassic("classic", [two]);
    server.terminated.add(one);
    expect(await groups.register("classic", [{ id: one }], never)).toBe("Gone");
    const both = [{ id: one }, { id: two }];
    const refused = { code: "CLOUD_REFUSED", retryable: false };
    await expect(groups.register("classic", both, never)).rejects.toMatchObject(refused);
    await expect(groups.deregister("classic", both, never)).rejects.toMatchObject(refused);
    await expect(groups.remaining("classic", both, never)).rejects.toMatchObject(refused);
    expect([...instances]).toEqual([two]);
    await server.stop();
  });
});

describe("TargetGroupClient", () => {
  it("reads a group's target type, VPC and owner", async () => {
    const { server } = await serve();
    const groups = new TargetGroupClient({ region: "eu-west-1" });
    server.addGroup("web", { targets: [{ id: one, port: 80 }] });
    server.addGroup("pods", {
      ...{ type: "ip", vpc: "vpc-b", tags: { "elbv2.k8s.aws/cluster": "main" } },
      targets: [{ id: "10.0.1.7", port: 8080 }],
    });
    server.addGroup("function", { type: "lambda" });
    server.addGroup("behind-alb", { type: "alb" });
    const read = await groups.read({ onError: () => {} }, never);
    expect(read.map(({ group }) => group)).toEqual([
      expect.objectContaining({ byAddress: false, vpc: "vpc-a", isOwned: false }),
      expect.objectContaining({ byAddress: true, vpc: "vpc-b", isOwned: true }),
    ]);
    await server.stop();
  });

  it("tells two ports of one instance apart", async () => {
    const { server } = await serve();
    const groups = new TargetGroupClient({ region: "eu-west-1" });
    const targets = [
      { id: one, port: 80 },
      { id: one, port: 766 },
    ];
    const group = server.addGroup("web", { targets: [...targets] });
    expect((await groups.read({ onError: () => {} }, never))[0]?.targets).toEqual(targets);
    await groups.deregister(group.arn, [{ id: one, port: 766 }], never);
    expect(server.serving(group)).toEqual([`${one}:80`]);
    await server.stop();
  });

  it("omits draining targets from a read", async () => {
    const { server } = await serve();
    const groups = new TargetGroupClient({ region: "eu-west-1" });
    const group = server.addGroup("web", { drainMs: 60_000, targets: [{ id: one, port: 80 }] });
    await groups.deregister(group.arn, [{ id: one, port: 80 }], never);
    expect((await groups.read({ onError: () => {} }, never))[0]?.targets).toEqual([]);
    await server.stop();
  });

  it("requests tags once per group, 20 groups at a time, and targets on each read", async () => {
    const { server } = await serve();
    const groups = new TargetGroupClient({ region: "eu-west-1" });
    for (let place = 0; place < 25; place += 1) server.addGroup(`group-${place}`);
    await groups.read({ onError: () => {} }, never);
    await groups.read({ onError: () => {} }, never);
    expect(server.count("DescribeTags")).toBe(2);
    // Three pages of ten, twice.
    expect(server.count("DescribeTargetGroups")).toBe(6);
    expect(server.count("DescribeTargetHealth")).toBe(50);
    await server.stop();
  });

  it("throws if the targets are of another type than the group's", async () => {
    const { server } = await serve();
    const groups = new TargetGroupClient({ region: "eu-west-1" });
    const { arn } = server.addGroup("pods", { type: "ip" });
    await expect(groups.register(arn, [{ id: one, port: 80 }], never)).rejects.toMatchObject({
      code: "CLOUD_REFUSED",
      retryable: false,
    });
    await server.stop();
  });

  it("deregisters the targets that exist if a missing one is rejected", async () => {
    const { server } = await serve();
    const groups = new TargetGroupClient({ region: "eu-west-1" });
    server.refusesAbsent = true;
    const there = [
      { id: one, port: 80 },
      { id: one, port: 81 },
    ];
    const gone = { id: two, port: 80 };
    const group = server.addGroup("web", { targets: [...there] });
    await groups.deregister(group.arn, [gone], never);
    expect(server.serving(group)).toEqual([`${one}:80`, `${one}:81`]);
    expect(await groups.remaining(group.arn, [...there, gone], never)).toEqual(
      there.map((target) => ({ ...target, isRegistered: true })),
    );
    await groups.deregister(group.arn, [...there, gone], never);
    expect(server.serving(group)).toEqual([]);
    expect(await groups.remaining(group.arn, [...there, gone], never)).toEqual([]);
    await server.stop();
  });

  it.each(["DescribeTargetHealth", "DeregisterTargets"])(
    "reports a rejected target unless a read shows that it is gone: %s",
    async (denied) => {
      const { server } = await serve();
      const groups = new TargetGroupClient({ region: "eu-west-1" });
      server.refusesAbsent = true;
      server.denied.add(denied);
      const { arn } = server.addGroup("web");
      const code = denied === "DeregisterTargets" ? "CLOUD_RIGHT_MISSING" : "CLOUD_REFUSED";
      await expect(groups.deregister(arn, [{ id: one, port: 80 }], never)).rejects.toMatchObject({
        code,
      });
      await server.stop();
    },
  );

  it("changes at most 200 targets per call", async () => {
    const { server } = await serve();
    const groups = new TargetGroupClient({ region: "eu-west-1" });
    const targets = Array.from({ length: 450 }, (_, port) => ({ id: one, port: port + 1 }));
    const group = server.addGroup("web", { targets: [...targets] });
    await groups.deregister(group.arn, targets, never);
    expect(server.serving(group)).toEqual([]);
    await groups.register(group.arn, targets, never);
    expect(server.serving(group)).toHaveLength(450);
    expect(server.calls.map((call) => call.targets.length)).toEqual([200, 200, 50, 200, 200, 50]);
    await server.stop();
  });

  it("makes at most 40 changes at a time", async () => {
    const { server } = await serve();
    const groups = new TargetGroupClient({ region: "eu-west-1" });
    const served = Array.from({ length: 60 }, (_, place) =>
      server.addGroup(`group-${place}`, { targets: [{ id: one, port: 80 }] }),
    );
    const held = Promise.withResolvers<void>();
    server.held = held.promise;
    const asked = Promise.all(
      served.map(({ arn }) => groups.deregister(arn, [{ id: one, port: 80 }], never)),
    );
    const areAsked = async () => server.mostAtOnce === 40;
    await waitUntil(areAsked, { what: "forty are under way", timeoutMs: 5000 });
    held.resolve();
    await asked;
    expect(served.flatMap((group) => server.serving(group))).toEqual([]);
    expect(server.mostAtOnce).toBe(40);
    await server.stop();
  });

  it("retries after it was throttled", async () => {
    const { server } = await serve();
    const groups = new TargetGroupClient({ region: "eu-west-1" });
    const group = server.addGroup("web", { targets: [{ id: one, port: 80 }] });
    server.throttleNext = 1;
    await groups.deregister(group.arn, [{ id: one, port: 80 }], never);
    expect(server.serving(group)).toEqual([]);
    expect(server.count("DeregisterTargets")).toBe(2);
    await server.stop();
  });
});
