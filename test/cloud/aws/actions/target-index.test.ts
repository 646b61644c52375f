import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ClassicLoadBalancerClient } from "../../../../src/cloud/aws/actions/classic-load-balancer-client.ts";
import { TargetGroupClient } from "../../../../src/cloud/aws/actions/target-group-client.ts";
import { TargetIndex } from "../../../../src/cloud/aws/actions/target-index.ts";
import type { TrafficGroups } from "../../../../src/cloud/aws/actions/traffic-groups.ts";
import { Ec2Client } from "../../../../src/cloud/aws/ec2-client.ts";
import { seededRng } from "../../../../src/core/chance/chance.ts";
import { LastcallError } from "../../../../src/errors.ts";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import { Bucket } from "../../../support/bucket.ts";
import { LoadBalancerServer } from "../../../support/load-balancer-server.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { NetworkServer } from "../../../support/network-server.ts";
import { stopTimers } from "../../../support/stopped-timers.ts";
import { waitUntil } from "../../../support/wait-until.ts";

const never = new AbortController().signal;
useAwsEnvironment();

describe("TargetIndex", () => {
  let balancers: LoadBalancerServer;
  let ec2: NetworkServer;
  let clock: ManualClock;
  let index: TargetIndex;
  let machines: string[];
  const stop = new AbortController();

  beforeEach(async () => {
    clock = new ManualClock();
    balancers = await new LoadBalancerServer(() => clock.now()).start();
    ec2 = await new NetworkServer().start();
    process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING_V2 = balancers.url;
    process.env.AWS_ENDPOINT_URL_ELASTIC_LOAD_BALANCING = balancers.url;
    process.env.AWS_ENDPOINT_URL_EC2 = ec2.url;
    machines = [];
    const region = "eu-west-1";
    index = new TargetIndex({
      kinds: [new TargetGroupClient({ region }), new ClassicLoadBalancerClient({ region })],
      network: new Ec2Client({ region }),
      machines: () => machines,
      ...{ clock, rng: seededRng(1) },
    });
  });
  afterEach(() => {
    vi.useRealTimers();
    return Promise.all([balancers.stop(), ec2.stop()]);
  });

  async function found(instanceId: string, ...addresses: readonly string[]) {
    const { holdings, faults } = await index.find({ instanceId, addresses }, never);
    const names = holdings.map(
      ({ group, target }) => `${group.id.split("/")[1] ?? group.id} ${target.id}:${target.port}`,
    );
    return { names: names.toSorted(), codes: faults.map(({ code }) => code) };
  }

  it("finds each group and port of an instance, the second time without a request", async () => {
    const { id } = ec2.addInstance(1);
    balancers.addGroup("web", {
      targets: [
        { id, port: 80 },
        { id, port: 766 },
      ],
    });
    balancers.addGroup("api", { targets: [{ id, port: 8080 }] });
    balancers.addGroup("other", { targets: [{ id: ec2.addInstance(2).id, port: 80 }] });
    balancers.addClassic("classic", [id]);
    const names = [`api ${id}:8080`, `classic ${id}:undefined`, `web ${id}:766`, `web ${id}:80`];
    expect(await found(id)).toEqual({ names, codes: [] });
    const calls = balancers.calls.length;
    expect(await found(id)).toEqual({ names, codes: [] });
    expect(balancers.calls).toHaveLength(calls);
    expect(ec2.calls).toEqual([]);
  });

  it("reads more groups than AWS's rate limit allows at once, with a second read", async () => {
    const { id } = ec2.addInstance(1);
    for (let place = 0; place < 120; place += 1) {
      balancers.addGroup(`group-${place}`, { targets: [{ id, port: 80 }] });
    }
    balancers.looks = new Bucket(40, 10);
    const timers = stopTimers();
    const first = await timers.passUntil(found(id));
    expect(first.names.length).toBeLessThan(60);
    expect(first.codes).toEqual(["CLOUD_RATE_LIMITED"]);
    index.readAgain();
    const isWhole = async () => {
      await clock.advance(200);
      return (await found(id)).names.length === 120;
    };
    const whole = { what: "all are read", timeoutMs: 20_000, intervalMs: 5 };
    await timers.passUntil(waitUntil(isWhole, whole));
    expect(await index.faults(never)).toEqual([]);
    expect(clock.monotonic()).toBeLessThan(60_000);
  });

  it("finds the groups that hold an address of the machine or its pods", async () => {
    const instance = ec2.addInstance(1);
    ec2.addInterface(instance);
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
    balancers.addGroup("other", { type: "ip", targets: [{ id: "10.0.1.8", port: 8080 }] });
    const { names } = await found(instance.id, "10.0.1.6", "10.0.1.7");
    expect(names).toEqual(["pods 10.0.1.7:8080"]);
  });

  it("ignores the same address in another VPC", async () => {
    const instance = ec2.addInstance(1, "vpc-a");
    ec2.addInterface(instance);
    const targets = [{ id: "10.0.1.7", port: 8080 }];
    balancers.addGroup("ours", { type: "ip", vpc: "vpc-a", targets: [...targets] });
    balancers.addGroup("theirs", { type: "ip", vpc: "vpc-b", targets: [...targets] });
    expect((await found(instance.id, "10.0.1.7")).names).toEqual(["ours 10.0.1.7:8080"]);
  });

  it("ignores addresses if EC2 does not tell the machine's VPC", async () => {
    const instance = ec2.addInstance(1);
    ec2.denied.add("DescribeNetworkInterfaces");
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
    balancers.addGroup("web", { targets: [{ id: instance.id, port: 80 }] });
    expect(await found(instance.id, "10.0.1.7")).toEqual({
      names: [`web ${instance.id}:80`],
      codes: ["CLOUD_RIGHT_MISSING"],
    });
  });

  it("reports that EC2 lists no interface of a running instance", async () => {
    const instance = ec2.addInstance(1);
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
    expect(await found(instance.id, "10.0.1.7")).toEqual({ names: [], codes: ["CLOUD_REFUSED"] });
    instance.state = "terminated";
    expect(await found(instance.id, "10.0.1.7")).toEqual({ names: [], codes: [] });
  });

  it("looks up the VPC of the fleet's machines beforehand", async () => {
    const instance = ec2.addInstance(1);
    ec2.addInterface(instance);
    machines.push(instance.id);
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
    await found("i-00000000000000009");
    expect(ec2.count("DescribeNetworkInterfaces")).toBe(1);
    expect((await found(instance.id, "10.0.1.7")).names).toHaveLength(1);
    expect(ec2.count("DescribeNetworkInterfaces")).toBe(1);
  });

  it("reads again for a machine that is in no group, once for fifty of them", async () => {
    balancers.addGroup("web");
    await found("i-00000000000000001");
    await clock.advance(31_000);
    const { id } = ec2.addInstance(2);
    balancers.groups[0]?.targets.push({ id, port: 80 });
    const before = balancers.count("DescribeTargetHealth");
    const fifty = await Promise.all(Array.from({ length: 50 }, () => found(id)));
    expect(fifty.every(({ names }) => names.length === 1)).toBe(true);
    expect(balancers.count("DescribeTargetHealth")).toBe(before + 1);
  });

  it("trusts a read for half a minute", async () => {
    balancers.addGroup("web");
    await found("i-00000000000000001");
    await clock.advance(29_000);
    await found("i-00000000000000001");
    expect(balancers.count("DescribeTargetHealth")).toBe(1);
  });

  it("reports what could not be read, and finds the rest", async () => {
    const { id } = ec2.addInstance(1);
    balancers.addClassic("classic", [id]);
    balancers.denied.add("DescribeTargetHealth");
    balancers.addGroup("web", { targets: [{ id, port: 80 }] });
    expect(await found(id)).toEqual({
      names: [`classic ${id}:undefined`],
      codes: ["CLOUD_RIGHT_MISSING"],
    });
  });

  it("finds the groups of one kind while the other hangs, and reports that later", async () => {
    const { id } = ec2.addInstance(1);
    balancers.addGroup("web", { targets: [{ id, port: 80 }] });
    balancers.hanging.add("DescribeLoadBalancers");
    const machine = { instanceId: id, addresses: [] };
    const timers = stopTimers();
    const soon = index.find(machine, never);
    const isRead = async () => index.progress.read === 1;
    await waitUntil(isRead, { what: "one kind is read", timeoutMs: 5000 });
    await clock.advance(1000);
    expect(await soon).toMatchObject({ isWhole: false, faults: [], holdings: [{}] });
    const { isWhole, faults, holdings } = await timers.passUntil(index.rest(machine, never));
    expect([isWhole, faults[0]?.code, holdings.length]).toEqual([true, "CLOUD_UNREACHABLE", 1]);
    // The next notice does not wait for it again.
    expect((await found(id)).codes).toEqual(["CLOUD_UNREACHABLE"]);
  });

  it("makes no notice wait for a kind that hangs but was read before", async () => {
    const { id } = ec2.addInstance(1);
    balancers.addGroup("web", { targets: [{ id, port: 80 }] });
    balancers.addClassic("classic", [id]);
    await found(id);
    balancers.hanging.add("DescribeLoadBalancers");
    index.readAgain();
    const calls = () => balancers.count("DescribeLoadBalancers");
    await waitUntil(async () => calls() === 2, { what: "it is read again", timeoutMs: 5000 });
    expect((await found(id)).names).toHaveLength(2);
  });

  it("keeps what it has read if a later read fails", async () => {
    const { id } = ec2.addInstance(1);
    balancers.addGroup("web", { targets: [{ id, port: 80 }] });
    await found(id);
    expect(await found(id)).toEqual({ names: [`web ${id}:80`], codes: [] });
    balancers.fault = "RightMissing";
    await clock.advance(31_000);
    // A machine that is in no group triggers another read.
    await found("i-00000000000000009");
    expect(await found(id)).toEqual({ names: [`web ${id}:80`], codes: [] });
  });

  /** The pauses between readings that all fail, in minutes. */
  async function pausesAfter(code: "CLOUD_UNREACHABLE" | "CLOUD_RIGHT_MISSING") {
    const readAtMs: number[] = [];
    const refusing: TrafficGroups = {
      kind: "TargetGroup",
      deregister: async () => {},
      register: async () => "Registered",
      remaining: async () => [],
      read: async () => {
        readAtMs.push(clock.monotonic());
        throw new LastcallError(code, "Cannot: a test says so");
      },
    };
    const network = { interfacesOf: async () => [], instance: async () => undefined };
    const tools = { kinds: [refusing], network, machines: () => [], clock, rng: seededRng(1) };
    const over = new AbortController();
    const following = new TargetIndex(tools).follow(() => {}, over.signal);
    await clock.advance(20 * 60_000);
    over.abort();
    await following;
    return readAtMs.slice(1).map((at, place) => (at - (readAtMs[place] ?? 0)) / 60_000);
  }

  it("reads again soon after a transient error, and less often the longer it lasts", async () => {
    const pauses = await pausesAfter("CLOUD_UNREACHABLE");
    const [first = Number.NaN] = pauses;
    expect(first).toBeLessThanOrEqual(0.5);
    expect(pauses.slice(0, 4)).toEqual(pauses.slice(0, 4).toSorted((a, b) => a - b));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(5);
    expect(Math.max(...pauses)).toBeGreaterThan(2.5);
  });

  it("reads no sooner after a missing permission than after none", async () => {
    const pauses = await pausesAfter("CLOUD_RIGHT_MISSING");
    expect(pauses.length).toBeGreaterThan(2);
    expect(Math.min(...pauses)).toBeGreaterThan(4.4);
  });

  it("reads every five minutes, and reports faults", async () => {
    const faults: LastcallError[] = [];
    balancers.addGroup("web");
    const following = index.follow((fault) => faults.push(fault), stop.signal);
    const reads = (count: number) =>
      waitUntil(
        async () => clock.sleeping === 1 && balancers.count("DescribeTargetGroups") >= count,
        { what: `reading ${count} is done`, timeoutMs: 5000, intervalMs: 5 },
      );
    await reads(1);
    balancers.denied.add("DescribeTargetHealth");
    // Between four and a half and five and a half minutes.
    await clock.advance(4.5 * 60_000 - 1);
    await reads(1);
    expect(faults).toEqual([]);
    await clock.advance(60_001);
    await reads(2);
    expect(faults[0]).toMatchObject({ code: "CLOUD_RIGHT_MISSING" });
    stop.abort();
    await following;
  });
});
