import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SecurityGroupRunner } from "../../../../src/cloud/aws/actions/security-groups.ts";
import { Ec2Client } from "../../../../src/cloud/aws/ec2-client.ts";
import type { Fields } from "../../../../src/core/json/json-field.ts";
import { LastcallError } from "../../../../src/errors.ts";
import { aTask } from "../../../contract/action-runner.contract.ts";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import {
  NetworkServer,
  type ServedInstance,
  type ServedInterface,
} from "../../../support/network-server.ts";

const never = new AbortController().signal;
const change = "ModifyNetworkInterfaceAttribute";
useAwsEnvironment();

describe("the security groups of a quarantined machine", () => {
  let server: NetworkServer;
  let runner: SecurityGroupRunner;
  let instance: ServedInstance;
  let first: ServedInterface;
  let second: ServedInterface;
  /** The instances that may leave, if they are known beforehand. */
  let known: { readonly instanceId: string; readonly region: string }[];

  beforeEach(async () => {
    server = await new NetworkServer().start();
    process.env.AWS_ENDPOINT_URL_EC2 = server.url;
    const network = new Ec2Client({ region: "eu-west-1" });
    runner = new SecurityGroupRunner({
      networkIn: () => network,
      known: () => known,
      clock: new ManualClock(),
    });
    known = [];
    for (const id of ["sg-nodes", "sg-db", "sg-quarantine"]) server.securityGroups.set(id, "vpc-a");
    instance = server.addInstance(1);
    first = server.addInterface(instance, { groups: ["sg-nodes", "sg-db"] });
    second = server.addInterface(instance, { groups: ["sg-nodes"] });
  });
  afterEach(() => server.stop());

  function taskOf(groupIds: readonly string[] = ["sg-quarantine"]) {
    const task = aTask({ kind: "replaceSecurityGroups", groupIds });
    return { ...task, target: { ...task.target, providerID: `aws:///eu-west-1a/${instance.id}` } };
  }

  const quarantine = { kind: "replaceSecurityGroups", groupIds: ["sg-quarantine"] } as const;
  const prepare = (groupIds?: readonly string[]) => runner.prepare(taskOf(groupIds), never);
  const apply = (undo: Fields | undefined) => runner.apply({ ...taskOf(), undo }, never);
  const restore = (undo: Fields | undefined) => runner.undo({ ...taskOf(), undo }, never);

  /** Runs the action; returns the recorded undo data. */
  async function replace(groupIds?: readonly string[]): Promise<Fields | undefined> {
    const undo = await prepare(groupIds);
    await apply(undo);
    return undo;
  }

  const whole = () => ({
    networkInterfaces: [
      { id: first.id, groupIds: ["sg-nodes", "sg-db"] },
      { id: second.id, groupIds: ["sg-nodes"] },
    ],
  });

  it("become the configured ones on each interface, with one change each", async () => {
    await replace();
    expect([first.groups, second.groups]).toEqual([["sg-quarantine"], ["sg-quarantine"]]);
    expect(server.count(change)).toBe(2);
  });

  it("are recorded before the first change", async () => {
    expect(await prepare()).toEqual(whole());
    expect(server.count(change)).toBe(0);
  });

  it("name the interfaces that were changed if another one was refused", async () => {
    const undo = await prepare();
    server.managed.add(second.id);
    await expect(apply(undo)).rejects.toMatchObject({
      message: expect.stringMatching(new RegExp(`${second.id}.*; changed: ${first.id}$`)),
    });
    expect(first.groups).toEqual(["sg-quarantine"]);
  });

  it("are restored as they were", async () => {
    await restore(await replace());
    expect([first.groups, second.groups]).toEqual([["sg-nodes", "sg-db"], ["sg-nodes"]]);
  });

  it("are neither recorded nor changed again by a second run", async () => {
    await replace();
    expect(await replace()).toBeUndefined();
    expect(server.count(change)).toBe(2);
  });

  it("are changed by the next leader if the first died between two changes", async () => {
    const undo = await prepare();
    first.groups = ["sg-quarantine"];
    await apply(undo);
    expect(second.groups).toEqual(["sg-quarantine"]);
    expect(server.calls.filter(({ action }) => action === change)).toEqual([
      { action: change, on: second.id },
    ]);
  });

  it("are recorded only for unchanged interfaces if a first run left no record", async () => {
    first.groups = ["sg-quarantine"];
    expect(await replace()).toEqual({
      networkInterfaces: [{ id: second.id, groupIds: ["sg-nodes"] }],
    });
  });

  it("are not changed on an interface that cannot be recorded", async () => {
    const undo = await prepare();
    const third = server.addInterface(instance);
    await apply(undo);
    const keep = () => Promise.reject(new LastcallError("LEASE_LOST", "Cannot write the record"));
    await expect(runner.apply({ ...taskOf(), undo, keep }, never)).rejects.toMatchObject({
      code: "LEASE_LOST",
    });
    expect(third.groups).toEqual(["sg-nodes"]);
    expect([first, second].map(({ groups }) => groups)).toEqual([
      ["sg-quarantine"],
      ["sg-quarantine"],
    ]);
  });

  it("are changed on a newly attached interface once it is recorded, and restored", async () => {
    const undo = await prepare();
    const third = server.addInterface(instance);
    const records: Fields[] = [];
    const keep = async (record: Fields) => {
      expect(third.groups).toEqual(["sg-nodes"]);
      records.push(record);
    };
    await runner.apply({ ...taskOf(), undo, keep }, never);
    expect(third.groups).toEqual(["sg-quarantine"]);
    const { networkInterfaces } = whole();
    const its = { id: third.id, groupIds: ["sg-nodes"] };
    expect(records).toEqual([{ networkInterfaces: [...networkInterfaces, its] }]);
    await restore(records[0]);
    expect([first.groups, third.groups]).toEqual([["sg-nodes", "sg-db"], ["sg-nodes"]]);
  });

  it.each(["terminated", "shutting-down"] as const)(
    "are reported to be on no interface if the instance is %s",
    async (state) => {
      server.interfaces.splice(0);
      instance.state = state;
      const undo = await prepare();
      expect(await apply(undo)).toEqual({ detail: "the instance has no network interface" });
    },
  );

  it("are replaced on an instance that an AWS service operates", async () => {
    server.operated.add(instance.id);
    const undo = await replace();
    expect([first.groups, second.groups]).toEqual([["sg-quarantine"], ["sg-quarantine"]]);
    await restore(undo);
    expect(first.groups).toEqual(["sg-nodes", "sg-db"]);
  });

  it("are not reported as replaced or restored if EC2 lists no interface of a running instance", async () => {
    const undo = await prepare();
    server.interfaces.splice(0);
    const unknown = {
      code: "CLOUD_REFUSED",
      retryable: true,
      message: expect.stringContaining(`lists none although ${instance.id} is running`),
    };
    await expect(prepare()).rejects.toMatchObject(unknown);
    await expect(apply(undo)).rejects.toMatchObject(unknown);
    await expect(restore(undo)).rejects.toMatchObject(unknown);
    known = [{ instanceId: instance.id, region: "eu-west-1" }];
    await expect(runner.check(quarantine, never)).rejects.toMatchObject(unknown);
  });

  it("are not changed if a group is in another VPC", async () => {
    server.securityGroups.set("sg-foreign", "vpc-b");
    await expect(replace(["sg-quarantine", "sg-foreign"])).rejects.toMatchObject({
      code: "CLOUD_REFUSED",
      message: expect.stringMatching(/sg-foreign is in vpc-b and the interface is in vpc-a/),
    });
    expect(server.count(change)).toBe(0);
  });

  it("are not changed if a group does not exist", async () => {
    const code = "ACTION_TARGET_UNKNOWN";
    await expect(replace(["sg-none"])).rejects.toMatchObject({ code, retryable: false });
    expect(server.count(change)).toBe(0);
  });

  it("are looked up once, by the check, and not at each departure", async () => {
    await runner.check(quarantine, never);
    await replace();
    expect(server.count("DescribeSecurityGroups")).toBe(1);
    expect(second.groups).toEqual(["sg-quarantine"]);
  });

  it("are not changed if a group is deleted between the check and the departure", async () => {
    await runner.check(quarantine, never);
    server.securityGroups.delete("sg-quarantine");
    await expect(replace()).rejects.toMatchObject({ code: "ACTION_TARGET_UNKNOWN" });
    expect([first.groups, second.groups]).toEqual([["sg-nodes", "sg-db"], ["sg-nodes"]]);
  });

  it("are changed on the other interfaces if one belongs to an AWS service", async () => {
    server.managed.add(first.id);
    await expect(replace()).rejects.toMatchObject({
      code: "CLOUD_REFUSED",
      message: expect.stringContaining(first.id),
    });
    expect(second.groups).toEqual(["sg-quarantine"]);
  });

  it("are restored only on interfaces that are still attached", async () => {
    const undo = await replace();
    server.interfaces.splice(server.interfaces.indexOf(second), 1);
    await restore(undo);
    expect(first.groups).toEqual(["sg-nodes", "sg-db"]);
    expect(server.count(change)).toBe(3);
  });

  it.each([
    ["DescribeNetworkInterfaces", "CLOUD_RIGHT_MISSING"],
    ["DescribeSecurityGroups", "CLOUD_RIGHT_MISSING"],
    [change, "CLOUD_RIGHT_MISSING"],
  ])("cannot be changed without the right to %s", async (action, code) => {
    server.denied.add(action);
    await expect(replace()).rejects.toMatchObject({ code, retryable: false });
  });

  it("fail the check if a group does not exist", async () => {
    const how = { ...quarantine, groupIds: ["sg-nodes", "sg-none"] };
    expect(await runner.check(how, never)).toEqual({
      ...{ code: "ACTION_TARGET_UNKNOWN", field: "replaceSecurityGroups.groupIds" },
      found: `InvalidGroup.NotFound (status 400), "The security group 'sg-none' does not exist"`,
      wanted: "security groups that exist, each of sg-nodes, sg-none",
    });
  });

  const knowAll = () =>
    known.push(...server.instances.map(({ id }) => ({ instanceId: id, region: "eu-west-1" })));

  it("are tried by the check, also for the way back, without a change", async () => {
    knowAll();
    expect(await runner.check(quarantine, never)).toBeUndefined();
    expect(server.tried).toEqual([`${first.id} sg-nodes sg-db`, `${first.id} sg-quarantine`]);
    expect([first.groups, second.groups]).toEqual([["sg-nodes", "sg-db"], ["sg-nodes"]]);
  });

  it.each([
    ["all", ["sg-nodes", "sg-quarantine"], "sg-nodes and sg-db"],
    ["the new groups", ["sg-quarantine"], "sg-quarantine"],
    ["the previous groups", ["sg-nodes"], "sg-nodes and sg-db"],
  ])("fail the check if %s may not be set", async (_, denied, told) => {
    knowAll();
    for (const id of denied) server.deniedGroups.add(id);
    expect(await runner.check(quarantine, never)).toMatchObject({
      ...{ code: "CLOUD_RIGHT_MISSING", field: "replaceSecurityGroups" },
      wanted: `the permission ec2:ModifyNetworkInterfaceAttribute on ${first.id} and ${told}`,
    });
    expect(server.count(change)).toBe(0);
  });

  it("are not changed by the check if the endpoint ignores DryRun", async () => {
    knowAll();
    server.ignoresDryRun = true;
    expect(await runner.check(quarantine, never)).toBeUndefined();
    expect(first.groups).toEqual(["sg-nodes", "sg-db"]);
  });

  it("fail the check if no machine is in their VPC", async () => {
    knowAll();
    server.securityGroups.set("sg-foreign", "vpc-b");
    const how = { ...quarantine, groupIds: ["sg-foreign"] };
    expect(await runner.check(how, never)).toEqual({
      ...{ code: "CLOUD_REFUSED", field: "replaceSecurityGroups.groupIds" },
      ...{ found: "sg-foreign of vpc-b", wanted: "groups in the machines' VPC, which is vpc-a" },
    });
    const other = server.addInstance(2, "vpc-b");
    server.addInterface(other, { groups: ["sg-foreign"] });
    knowAll();
    expect(await runner.check(how, never)).toBeUndefined();
  });

  it("fail the check if they are in two VPCs", async () => {
    server.securityGroups.set("sg-foreign", "vpc-b");
    const how = { ...quarantine, groupIds: ["sg-quarantine", "sg-foreign"] };
    expect(await runner.check(how, never)).toMatchObject({
      ...{ code: "CLOUD_REFUSED", found: "sg-quarantine of vpc-a and sg-foreign of vpc-b" },
      wanted: "groups in one VPC",
    });
  });

  it("are refused for a machine that is not on EC2", async () => {
    const task = taskOf();
    const target = { ...task.target, providerID: "gce://p/z/n", instanceId: "n" };
    await expect(runner.prepare({ ...task, target }, never)).rejects.toMatchObject({
      code: "ACTION_REFUSED",
    });
  });
});
