import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SecurityGroupRunner } from "../../../../src/cloud/aws/actions/security-groups.ts";
import { Ec2Client } from "../../../../src/cloud/aws/ec2-client.ts";
import type { Fields } from "../../../../src/core/json/json-field.ts";
import { minutes } from "../../../../src/core/time/time.ts";
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

describe("a machine that is quarantined more than once", () => {
  let server: NetworkServer;
  let clock: ManualClock;
  let runner: SecurityGroupRunner;
  let instance: ServedInstance;
  let its: ServedInterface;

  beforeEach(async () => {
    server = await new NetworkServer().start();
    process.env.AWS_ENDPOINT_URL_EC2 = server.url;
    const network = new Ec2Client({ region: "eu-west-1" });
    clock = new ManualClock();
    runner = new SecurityGroupRunner({ networkIn: () => network, clock });
    for (const id of ["sg-nodes", "sg-quarantine", "sg-dark"]) {
      server.securityGroups.set(id, "vpc-a");
    }
    instance = server.addInstance(1);
    its = server.addInterface(instance);
  });
  afterEach(() => server.stop());

  function taskOf(...groupIds: readonly string[]) {
    const task = aTask({ kind: "replaceSecurityGroups", groupIds });
    return { ...task, target: { ...task.target, providerID: `aws:///eu-west-1a/${instance.id}` } };
  }

  /** Quarantines the machine; returns the recorded undo data. */
  async function quarantine(...groupIds: readonly string[]): Promise<Fields | undefined> {
    const task = taskOf(...groupIds);
    const undo = await runner.prepare(task, never);
    await runner.apply({ ...task, undo }, never);
    return undo;
  }

  const release = (undo: Fields | undefined, ...groupIds: readonly string[]) =>
    runner.undo({ ...taskOf(...groupIds), undo }, never);

  const ofNodes = () => ({ networkInterfaces: [{ id: its.id, groupIds: ["sg-nodes"] }] });

  it.each([["sg-quarantine"], ["sg-dark"]])(
    "is quarantined again by %s and restored, although EC2 still shows the first groups",
    async (next) => {
      await release(await quarantine("sg-quarantine"), "sg-quarantine");
      server.shownGroups.set(its.id, ["sg-quarantine"]);
      const undo = await quarantine(next);
      expect(its.groups).toEqual([next]);
      expect(undo).toEqual(ofNodes());
      await release(undo, next);
      expect(its.groups).toEqual(["sg-nodes"]);
    },
  );

  it("gets its own groups back after a second quarantine on top of the first", async () => {
    const first = await quarantine("sg-quarantine");
    const second = await quarantine("sg-dark");
    expect(second).toEqual(first);
    await Promise.all([release(first, "sg-quarantine"), release(second, "sg-dark")]);
    expect(its.groups).toEqual(["sg-nodes"]);
  });

  it("has its own groups recorded even if the first change has an unknown outcome", async () => {
    const task = taskOf("sg-quarantine");
    const undo = await runner.prepare(task, never);
    server.denied.add(change);
    await expect(runner.apply({ ...task, undo }, never)).rejects.toThrow();
    its.groups = ["sg-quarantine"];
    server.denied.clear();
    expect(await quarantine("sg-dark")).toEqual(ofNodes());
  });

  it("has the groups recorded that a user gave it in between", async () => {
    await release(await quarantine("sg-quarantine"), "sg-quarantine");
    server.securityGroups.set("sg-db", "vpc-a");
    its.groups = ["sg-nodes", "sg-db"];
    expect(await quarantine("sg-quarantine")).toEqual({
      networkInterfaces: [{ id: its.id, groupIds: ["sg-nodes", "sg-db"] }],
    });
  });

  it("stays in a user's own quarantine, long after it was restored", async () => {
    await release(await quarantine("sg-quarantine"), "sg-quarantine");
    await clock.advance(minutes(6));
    its.groups = ["sg-quarantine"];
    const changes = server.count(change);
    expect(await quarantine("sg-quarantine")).toBeUndefined();
    expect(server.count(change)).toBe(changes);
  });

  it("is fully restored if one interface could not be changed", async () => {
    const other = server.addInterface(instance);
    server.managed.add(other.id);
    const task = taskOf("sg-quarantine");
    const undo = await runner.prepare(task, never);
    await expect(runner.apply({ ...task, undo }, never)).rejects.toThrow(other.id);
    expect([its.groups, other.groups]).toEqual([["sg-quarantine"], ["sg-nodes"]]);
    await release(undo, "sg-quarantine");
    expect([its.groups, other.groups]).toEqual([["sg-nodes"], ["sg-nodes"]]);
  });
});
