import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import type {
  LoadBalancerServer,
  ServedClassic,
  ServedGroup,
} from "../../../support/load-balancer-server.ts";
import { TargetStage } from "../../../support/target-stage.ts";

const address = "10.0.2.5";
useAwsEnvironment();

describe("a machine in an ALB, an NLB and a classic load balancer at a time", () => {
  let stage: TargetStage;
  let balancers: LoadBalancerServer;
  let groups: readonly ServedGroup[];
  let classic: ServedClassic;
  let before: readonly string[];

  beforeEach(async () => {
    stage = await new TargetStage().start();
    ({ balancers } = stage);
    balancers.pageSize = 2;
    const { id } = stage.instance;
    stage.ec2.addInterface(stage.instance, { addresses: ["10.0.1.7", address] });
    const on = (target: string, ...ports: readonly number[]) =>
      ports.map((port) => ({ id: target, port }));
    groups = [
      balancers.addGroup("alb", { targets: on(id, 80, 8443) }),
      balancers.addGroup("nlb", { targets: on(id, 31_000) }),
      balancers.addGroup("pods", { type: "ip", targets: on(address, 8080, 9090, 9091) }),
      balancers.addGroup("host", { type: "ip", targets: on("10.0.1.7", 443) }),
      balancers.addGroup("others", { targets: on("i-00000000000000002", 80) }),
      balancers.addGroup("code", { type: "lambda" }),
      balancers.addGroup("empty"),
    ];
    classic = balancers.addClassic("classic", [id, "i-00000000000000002"]);
    balancers.addClassic("other", ["i-00000000000000002"]);
    before = stage.standing();
  });
  afterEach(() => stage.stop());

  const given = { pods: ["10.0.1.7", address] };
  const changes = (from = 0) =>
    balancers.calls
      .slice(from)
      .filter(({ action }) => !action.startsWith("Describe"))
      .map(({ action, on = "" }) => `${action} ${on.split("/")[1] ?? on}`)
      .toSorted();
  const counts = () => Map.groupBy(balancers.calls, ({ action }) => action);

  it("leaves each with all of its ports by one call, and the index has read each group once", async () => {
    expect((await stage.run(given)).detail).toBe("out of 5 groups");
    expect(stage.standing()).toEqual(["i-00000000000000002:80"]);
    expect([...classic.instances]).toEqual(["i-00000000000000002"]);
    expect(changes()).toEqual([
      "DeregisterInstancesFromLoadBalancer classic",
      ...["alb", "host", "nlb", "pods"].map((name) => `DeregisterTargets ${name}`),
    ]);
    const asked = [...counts()].map(([action, calls]) => `${action} ${calls.length}`);
    expect(asked.toSorted()).toEqual([
      "DeregisterInstancesFromLoadBalancer 1",
      "DeregisterTargets 4",
      "DescribeLoadBalancers 1",
      "DescribeTags 1",
      // Two groups a page, and a look at each that can hold machines.
      "DescribeTargetGroups 4",
      "DescribeTargetHealth 6",
    ]);
  });

  it("comes back to each with all of its ports, by one call", async () => {
    const { undo } = await stage.run(given);
    const from = balancers.calls.length;
    expect((await stage.comeBack(undo, given)).detail).toBe("registered again with 5 groups");
    expect(stage.standing()).toEqual(before);
    expect(classic.instances.size).toBe(2);
    expect(changes(from)).toEqual([
      "RegisterInstancesWithLoadBalancer classic",
      ...["alb", "host", "nlb", "pods"].map((name) => `RegisterTargets ${name}`),
    ]);
  });

  /** As somebody does that deletes a target group and a load balancer. */
  function deleteSome(): void {
    balancers.groups.splice(0, 1);
    balancers.classics.splice(0, 1);
  }

  it("leaves the rest where a group and a load balancer are deleted between reading and notice", async () => {
    await stage.run({ machine: "i-00000000000000099" });
    deleteSome();
    expect((await stage.run(given)).detail).toMatch(/^out of 5 groups/);
    expect(stage.standing()).toEqual(["i-00000000000000002:80"]);
  });

  it("comes back to the rest where a group and a load balancer are deleted meanwhile", async () => {
    const { undo } = await stage.run(given);
    deleteSome();
    expect((await stage.comeBack(undo, given)).detail).toBe(
      "registered again with 3 groups, 2 of 5 gone meanwhile",
    );
    expect(stage.standing()).toEqual(before.slice(2));
  });

  it("is out when nothing drains any more, though one of its groups is deleted while it does", async () => {
    for (const group of groups) group.drainMs = 60_000;
    balancers.groups.splice(1);
    balancers.classics.splice(0);
    const running = stage.runThrough({ ...given, waitMs: 30_000 });
    await stage.clock.advance(2000);
    balancers.groups.splice(0);
    expect(await running).toBe("out of 1 group");
  });

  it.each(["DescribeTargetHealth", "DescribeTags", "DescribeLoadBalancers"])(
    "leaves what it can, and says what it could not, without the right to %s",
    async (action) => {
      balancers.denied.add(action);
      const ended = await stage.run(given).then(
        ({ detail }) => detail,
        (error: unknown) => String(error),
      );
      expect(ended).toMatch(
        action === "DescribeTags"
          ? /owner could not be read/
          : new RegExp(`the permission .*${action}`),
      );
      const left = stage.standing().filter((target) => !target.startsWith("i-00000000000000002"));
      expect(left).toHaveLength(action === "DescribeTargetHealth" ? before.length - 1 : 0);
      expect(classic.instances.has(stage.instance.id)).toBe(action === "DescribeLoadBalancers");
    },
  );
});
