import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Fields } from "../../../../src/core/json/json-field.ts";
import { LastcallError } from "../../../../src/errors.ts";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import type { LoadBalancerServer } from "../../../support/load-balancer-server.ts";
import type { ManualClock } from "../../../support/manual-clock.ts";
import type { NetworkServer, ServedInstance } from "../../../support/network-server.ts";
import { TargetStage } from "../../../support/target-stage.ts";
import { waitUntil } from "../../../support/wait-until.ts";

const never = new AbortController().signal;
useAwsEnvironment();

describe("a machine that joined a group after the last read", () => {
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

  it("leaves the known groups first, then the group that it joined since the read", async () => {
    stage.addGroups(1);
    const joined = balancers.addGroup("joined", { drainMs: 0 });
    const others = [ec2.addInstance(2), ec2.addInstance(3)];
    for (const { id } of others) balancers.groups[0]?.targets.push({ id, port: 80 });
    await stage.readLongAgo();
    joined.targets.push({ id: instance.id, port: 8080 });
    const before = balancers.calls.length;
    const running = stage.runThrough({});
    await waitUntil(async () => balancers.serving(joined).length === 0, {
      ...{ what: "it is out of the group that it has joined", timeoutMs: 8000, intervalMs: 2 },
    });
    expect(await running).toBe("deregistered from 2 groups");
    const calls = balancers.calls.slice(before);
    // It leaves the known group at once; then each group is read once, and it leaves the other.
    expect(calls.map(({ action }) => action)).toEqual([
      "DeregisterTargets",
      ...["DescribeTargetGroups", "DescribeLoadBalancers"],
      ...["DescribeTargetHealth", "DescribeTargetHealth"],
      "DeregisterTargets",
    ]);
    expect(clock.monotonic()).toBeLessThan(65_000);
    // Machines that follow within half a minute share that read.
    for (const { id } of others) await stage.run({ machine: id });
    expect(balancers.count("DescribeTargetHealth")).toBe(4);
  });

  it("leaves that group even if a known one denies the call, and then fails", async () => {
    balancers.addClassic("classic", [instance.id]);
    const joined = balancers.addGroup("joined");
    await stage.readLongAgo();
    joined.targets.push({ id: instance.id, port: 8080 });
    balancers.denied.add("DeregisterInstancesFromLoadBalancer");
    await expect(stage.runThrough({})).rejects.toMatchObject({ code: "CLOUD_RIGHT_MISSING" });
    expect(stage.standing()).toEqual([]);
  });

  it("is also registered again with the group that it had joined", async () => {
    stage.addGroups(1);
    const joined = balancers.addGroup("joined");
    await stage.readLongAgo();
    joined.targets.push({ id: instance.id, port: 8080 });
    const records: Fields[] = [];
    await stage.runThrough({ keep: async (undo) => void records.push(undo) });
    expect(stage.standing()).toEqual([]);
    await stage.comeBack(records.at(-1));
    expect(stage.standing()).toEqual([`${instance.id}:80`, `${instance.id}:8080`]);
  });

  it.each([
    ["denied", "RightMissing", /elasticloadbalancing:DescribeTargetGroups/],
    ["never answered", "hangs", /the read timed out/],
  ])("leaves the known groups if the read for more is %s, and says so", async (_, how, remark) => {
    stage.addGroups(2);
    await stage.readLongAgo();
    const hurdle = how === "hangs" ? balancers.hanging : balancers.denied;
    hurdle.add("DescribeTargetGroups");
    const detail = await stage.runThrough({});
    expect(detail).toMatch(
      /^deregistered from 2 groups, registrations of the last minutes are unknown/,
    );
    expect(detail).toMatch(remark);
    expect(stage.standing()).toEqual([]);
    // The action has 30 seconds.
    expect(clock.monotonic()).toBeLessThan(90_000);
  });

  it("leaves groups that hold its ID while its addresses are unknown, then the rest", async () => {
    ec2.addInterface(instance);
    stage.addGroups(1);
    balancers.addGroup("pods", { type: "ip", targets: [{ id: "10.0.1.7", port: 8080 }] });
    const task = stage.taskOf({});
    let asked = 0;
    const addresses = () => {
      asked += 1;
      return asked <= 2
        ? new Promise<never>(() => {})
        : Promise.resolve({ node: [], pods: ["10.0.1.7"] });
    };
    const blind = { ...task, target: { ...task.target, addresses } };
    let undo: Fields | undefined;
    const keep = async (more: Fields) => {
      undo = more;
    };
    const preparing = stage.runner.prepare(blind, never);
    await waitUntil(async () => clock.sleeping > 0, {
      what: "it waits",
      timeoutMs: 5000,
      intervalMs: 2,
    });
    await clock.advance(2000);
    undo = await preparing;
    const applying = stage.runner.apply({ ...blind, undo, keep }, never);
    applying.catch(() => undefined);
    await waitUntil(async () => stage.standing().length === 1, {
      ...{ what: "it is out of the group that holds its id", timeoutMs: 5000, intervalMs: 2 },
    });
    await clock.advance(2000);
    await expect(applying).rejects.toMatchObject({ code: "ACTION_TIMEOUT", retryable: true });
    expect(stage.standing()).toEqual(["10.0.1.7:8080"]);
    await stage.runner.apply({ ...blind, undo, keep }, never);
    expect(stage.standing()).toEqual([]);
    expect(undo?.targets).toHaveLength(2);
  });

  it("leaves no group before that is recorded", async () => {
    stage.addGroups(2);
    const undo = {
      targets: [{ targetGroupArn: balancers.groups[0]?.arn, id: instance.id, port: 80 }],
    };
    const keep = () => Promise.reject(new LastcallError("LEASE_LOST", "Cannot write the record"));
    await expect(stage.run({ undo, keep })).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(stage.standing()).toEqual([`${instance.id}:80`]);
    const standingThen: (readonly string[])[] = [];
    const { undo: kept } = await stage.run({
      undo,
      keep: async () => void standingThen.push(stage.standing()),
    });
    expect(standingThen).toEqual([[`${instance.id}:80`]]);
    expect(stage.standing()).toEqual([]);
    await stage.comeBack(kept);
    expect(stage.standing()).toHaveLength(2);
  });
});
