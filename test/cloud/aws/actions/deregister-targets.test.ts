import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Fields } from "../../../../src/core/json/json-field.ts";
import { LastcallError } from "../../../../src/errors.ts";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import { Bucket } from "../../../support/bucket.ts";
import type { LoadBalancerServer } from "../../../support/load-balancer-server.ts";
import type { ManualClock } from "../../../support/manual-clock.ts";
import type { NetworkServer, ServedInstance } from "../../../support/network-server.ts";
import { type TargetRun, TargetStage } from "../../../support/target-stage.ts";
import { waitUntil } from "../../../support/wait-until.ts";

const never = new AbortController().signal;
useAwsEnvironment();

describe("a machine that is deregistered from its groups", () => {
  let stage: TargetStage;
  let balancers: LoadBalancerServer;
  let ec2: NetworkServer;
  let clock: ManualClock;
  let instance: ServedInstance;

  beforeEach(async () => {
    stage = await new TargetStage().start();
    ({ balancers, ec2, clock, instance } = stage);
  });
  afterEach(() => stage.stop());

  const taskOf = (given: TargetRun) => stage.taskOf(given);
  const prepare = () => stage.prepare();
  const run = (given?: TargetRun) => stage.run(given);
  const runThrough = (given: TargetRun) => stage.runThrough(given);
  const comeBack = (undo: Fields | undefined, given?: TargetRun) => stage.comeBack(undo, given);
  const addGroups = (count: number, drainMs?: number) => stage.addGroups(count, drainMs);
  const standing = () => stage.standing();

  it("leaves each group with one call, and no group is read for that", async () => {
    addGroups(5);
    balancers.addGroup("other", { targets: [{ id: ec2.addInstance(2).id, port: 80 }] });
    await run({ machine: "i-00000000000000099" });
    const before = balancers.calls.length;
    expect((await run()).detail).toBe("deregistered from 5 groups");
    expect(balancers.calls.slice(before).map(({ action }) => action)).toEqual(
      Array(5).fill("DeregisterTargets"),
    );
    expect(standing()).toHaveLength(1);
  });

  it("needs no lookup of its addresses if no group holds addresses", async () => {
    addGroups(2);
    await run({ machine: "i-00000000000000099" });
    const looks = stage.addressLooks;
    expect((await run()).detail).toBe("deregistered from 2 groups");
    expect(stage.addressLooks).toBe(looks);
  });

  it("has its addresses looked up once, before its first change", async () => {
    ec2.addInterface(instance);
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
    await run({ machine: "i-00000000000000099" });
    const looks = stage.addressLooks;
    expect((await run({ pods: ["10.0.1.7"] })).detail).toBe("deregistered from 1 group");
    expect(stage.addressLooks).toBe(looks + 1);
  });

  it("has its addresses looked up later if a new group holds addresses", async () => {
    ec2.addInterface(instance);
    addGroups(1);
    await stage.readLongAgo();
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
    expect(await runThrough({ pods: ["10.0.1.7"], waitMs: 30_000 })).toBe(
      "deregistered from 2 groups",
    );
    expect(standing()).toEqual([]);
  });

  it("leaves a group on all its ports with one call", async () => {
    const ports = [80, 766].map((port) => ({ id: instance.id, port }));
    balancers.addGroup("web", { targets: [...ports] });
    await run();
    expect(balancers.count("DeregisterTargets")).toBe(1);
    expect(standing()).toEqual([]);
  });

  it("shares calls with others: 50 machines leave a group with two calls", async () => {
    const others = Array.from({ length: 50 }, (_, place) => ec2.addInstance(place + 10));
    const targets = others.map(({ id }) => ({ id, port: 80 }));
    balancers.addGroup("web", { targets });
    await Promise.all(others.map(({ id }) => run({ machine: id })));
    expect(standing()).toEqual([]);
    expect(balancers.count("DeregisterTargets")).toBe(2);
  });

  it("has its undo data prepared without a change", async () => {
    addGroups(1);
    balancers.addClassic("classic", [instance.id]);
    expect(await prepare()).toEqual({
      targets: [{ targetGroupArn: balancers.groups[0]?.arn, id: instance.id, port: 80 }],
      classicLoadBalancers: [{ name: "classic", id: instance.id }],
    });
    expect(standing()).toHaveLength(1);
    await run();
    expect(balancers.classics[0]?.instances.size).toBe(0);
  });

  it("is deregistered by the next leader, from the first leader's record", async () => {
    addGroups(2);
    const { undo } = await run();
    // The first leader died after its first call.
    balancers.groups[1]?.targets.push({ id: instance.id, port: 80 });
    stage.runner = stage.freshRunner();
    expect((await run({ undo })).detail).toBe("deregistered from 2 groups");
    expect(standing()).toEqual([]);
  });

  it("is left to the label in a group that the load balancer controller owns", async () => {
    const tags = { "elbv2.k8s.aws/cluster": "main" };
    const owned = balancers.addGroup("owned", { tags, targets: [{ id: instance.id, port: 80 }] });
    addGroups(1);
    const running = runThrough({ waitMs: 60_000 });
    await waitUntil(async () => balancers.count("DescribeTargetHealth") > 2, {
      ...{ what: "it is waited for", timeoutMs: 5000, intervalMs: 5 },
    });
    expect(balancers.serving(owned)).toHaveLength(1);
    owned.targets.splice(0);
    expect(await running).toBe(
      "deregistered from 1 group, left to aws-load-balancer-controller in 1 group",
    );
    expect(balancers.calls.filter(({ action }) => action === "DeregisterTargets")).toEqual([
      expect.objectContaining({ on: balancers.groups[1]?.arn }),
    ]);
  });

  it("fails if the load balancer controller does not act on the label", async () => {
    const tags = { "elbv2.k8s.aws/cluster": "main" };
    balancers.addGroup("owned", { tags, targets: [{ id: instance.id, port: 80 }] });
    await expect(runThrough({ waitMs: 10_000 })).rejects.toMatchObject({
      code: "ACTION_TIMEOUT",
      message: expect.stringContaining(
        "from 1 group: aws-load-balancer-controller manages its targets and has not acted",
      ),
    });
    expect(standing()).toHaveLength(1);
  });

  it("is deregistered from such a group if nobody sets the label", async () => {
    stage.runner = stage.freshRunner({ readsOwners: false });
    const tags = { "elbv2.k8s.aws/cluster": "main" };
    balancers.addGroup("owned", { tags, targets: [{ id: instance.id, port: 80 }] });
    const { detail, undo } = await run();
    expect(detail).toBe("deregistered from 1 group");
    expect(undo?.targets).toHaveLength(1);
    expect(standing()).toEqual([]);
    expect(balancers.count("DescribeTags")).toBe(0);
  });

  it("has no undo data if the load balancer controller owns every group", async () => {
    const tags = { "elbv2.k8s.aws/cluster": "main" };
    balancers.addGroup("owned", { tags, targets: [{ id: instance.id, port: 80 }] });
    expect(await prepare()).toBeUndefined();
  });

  it("leaves a group whose owner cannot be read, which the check reports beforehand", async () => {
    addGroups(2);
    balancers.denied.add("DescribeTags");
    expect(
      await stage.runner.check({ kind: "deregisterTargets", wait: true }, never),
    ).toMatchObject({
      code: "CLOUD_RIGHT_MISSING",
      wanted: expect.stringContaining("elasticloadbalancing:DescribeTags"),
    });
    const { detail, undo } = await run();
    expect(detail).toBe("deregistered from 2 groups, the owner of 2 could not be read");
    expect(standing()).toEqual([]);
    expect(undo?.targets).toHaveLength(2);
    balancers.denied.clear();
    await clock.advance(31_000);
    // A machine that is in no group triggers another read.
    await run({ machine: "i-00000000000000099" });
    expect(
      await stage.runner.check({ kind: "deregisterTargets", wait: true }, never),
    ).toBeUndefined();
  });

  it("is waited for until its connections are drained", async () => {
    addGroups(2, 20_000);
    expect(await runThrough({ waitMs: 60_000 })).toBe("deregistered from 2 groups");
    // After the 20 seconds, and at most one poll later.
    expect(clock.monotonic()).toBeGreaterThanOrEqual(20_000);
    expect(clock.monotonic()).toBeLessThan(30_000);
  });

  it("is waited for until just before its time is up", async () => {
    addGroups(1, 300_000);
    expect(await runThrough({ waitMs: 30_000 })).toBe(
      "deregistered from 1 group, 1 of 1 still draining",
    );
    expect(clock.monotonic()).toBeGreaterThanOrEqual(29_000);
    expect(clock.monotonic()).toBeLessThan(30_000);
  });

  it("leaves 20 groups with 9 others within AWS's rate limits, with no repeated call", async () => {
    const others = Array.from({ length: 9 }, (_, place) => ec2.addInstance(place + 10));
    for (let place = 0; place < 20; place += 1) {
      const targets = [instance, ...others].map(({ id }) => ({ id, port: 80 }));
      balancers.addGroup(`group-${place}`, { targets });
    }
    await run({ machine: "i-00000000000000099" });
    balancers.changes = new Bucket(20, 4);
    const before = balancers.calls.length;
    const all = [instance, ...others].map(({ id }) => run({ machine: id }));
    await waitUntil(
      async () => {
        await clock.advance(20);
        return standing().length === 0;
      },
      { what: "all are out", timeoutMs: 15_000, intervalMs: 5 },
    );
    expect(clock.monotonic()).toBeLessThan(30_000);
    expect((await Promise.all(all)).map(({ detail }) => detail)).toEqual(
      Array(10).fill("deregistered from 20 groups"),
    );
    const taken = balancers.calls.slice(before).filter(({ isTaken }) => isTaken);
    const left = taken.flatMap(({ on, targets }) => targets.map((id) => `${on} ${id}`));
    expect([left.length, new Set(left).size]).toEqual([200, 200]);
    expect(taken.length).toBeLessThanOrEqual(40);
  });

  it("is not deregistered again from groups that an earlier attempt has covered", async () => {
    addGroups(3);
    balancers.addClassic("classic", [instance.id]);
    await run({ machine: "i-00000000000000099" });
    balancers.denied.add("DeregisterInstancesFromLoadBalancer");
    const task = taskOf({});
    const undo = await stage.runner.prepare(task, never);
    const attempt = () => stage.runner.apply({ ...task, undo }, never);
    await expect(attempt()).rejects.toMatchObject({ code: "CLOUD_RIGHT_MISSING" });
    balancers.denied.clear();
    expect((await attempt()).detail).toBe("deregistered from 4 groups");
    expect(balancers.count("DeregisterTargets")).toBe(3);
  });

  it("is registered again while it runs", async () => {
    addGroups(2);
    balancers.addClassic("classic", [instance.id]);
    const { undo } = await run();
    await comeBack(undo);
    expect(standing()).toEqual([`${instance.id}:80`, `${instance.id}:80`]);
    expect([...(balancers.classics[0]?.instances ?? [])]).toEqual([instance.id]);
  });

  it("is deregistered at the next notice from the groups that it rejoined", async () => {
    const tags = { "elbv2.k8s.aws/cluster": "main" };
    balancers.addGroup("owned", { tags, targets: [{ id: instance.id, port: 80 }] });
    addGroups(1);
    const { undo } = await run();
    // A read now does not find it any more.
    await clock.advance(31_000);
    await run({ machine: "i-00000000000000099" });
    const reads = balancers.count("DescribeTargetHealth");
    await comeBack(undo);
    await waitUntil(async () => balancers.count("DescribeTargetHealth") === reads + 2, {
      ...{ what: "the groups are read again", timeoutMs: 5000, intervalMs: 5 },
    });
    await run();
    expect(standing()).toEqual([`${instance.id}:80`]);
  });

  it("is deregistered and registered again if an AWS service operates it", async () => {
    ec2.addInterface(instance, { addresses: ["10.0.1.1"] });
    ec2.operated.add(instance.id);
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
    addGroups(1);
    const before = standing();
    const { undo } = await run({ pods: ["10.0.1.7"] });
    expect(standing()).toEqual([]);
    await comeBack(undo, { pods: ["10.0.1.7"] });
    expect(standing()).toEqual(before);
  });

  it("is not registered again once it is shutting down", async () => {
    addGroups(1);
    const { undo } = await run();
    instance.state = "shutting-down";
    expect((await comeBack(undo)).detail).toMatch(/no longer runs/);
    expect(standing()).toEqual([]);
  });

  it("is registered again without addresses that its pods no longer have", async () => {
    ec2.addInterface(instance);
    const targets = ["10.0.1.7", "10.0.1.8"].map((id) => ({ id, port: 8080 }));
    balancers.addGroup("pods", { type: "ip", targets });
    const { undo } = await run({ pods: ["10.0.1.7", "10.0.1.8"] });
    expect(standing()).toEqual([]);
    await comeBack(undo, { pods: ["10.0.1.7"] });
    expect(standing()).toEqual(["10.0.1.7:8080"]);
  });

  it("leaves the other groups if one denies the call", async () => {
    addGroups(2);
    balancers.addClassic("classic", [instance.id]);
    balancers.denied.add("DeregisterInstancesFromLoadBalancer");
    await expect(run()).rejects.toMatchObject({ code: "CLOUD_RIGHT_MISSING", retryable: false });
    expect(standing()).toEqual([]);
  });

  it("leaves the known groups, then fails since it may be in others", async () => {
    addGroups(1);
    balancers.denied.add("DescribeLoadBalancers");
    await expect(run()).rejects.toMatchObject({
      code: "CLOUD_RIGHT_MISSING",
      message: expect.stringContaining("elasticloadbalancing:DescribeLoadBalancers"),
    });
    expect(standing()).toEqual([]);
  });

  it("cannot be deregistered without the right to list groups, as the check reports", async () => {
    addGroups(1);
    balancers.denied.add("DescribeTargetGroups");
    expect(
      await stage.runner.check({ kind: "deregisterTargets", wait: true }, never),
    ).toMatchObject({
      code: "CLOUD_RIGHT_MISSING",
      field: "deregisterTargets",
      wanted: expect.stringContaining("elasticloadbalancing:DescribeTargetGroups"),
    });
    balancers.denied.clear();
    expect(
      await stage.runner.check({ kind: "deregisterTargets", wait: true }, never),
    ).toBeUndefined();
  });

  it("leaves the groups that hold it by ID if its addresses cannot be looked up", async () => {
    addGroups(1);
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
    const task = taskOf({});
    const addresses = async () => {
      throw new LastcallError("API_UNREACHABLE", "Cannot list the pods: a test has it fail");
    };
    const blind = { ...task, target: { ...task.target, addresses } };
    const undo = await stage.runner.prepare(blind, never);
    await expect(stage.runner.apply({ ...blind, undo }, never)).rejects.toMatchObject({
      code: "API_UNREACHABLE",
    });
    expect(standing()).toEqual(["10.0.1.7:8080"]);
  });
});
