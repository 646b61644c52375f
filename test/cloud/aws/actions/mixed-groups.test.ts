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

describe("a machine in an ALB, an NLB and a classic load balancer", () => {
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

  it("leaves each on all its ports with one call, after one read of each group", async () => {
    expect((await stage.run(given)).detail).toBe("deregistered from 5 groups");
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
      // Two groups per page, and one read of each group that can hold machines.
      "DescribeTargetGroups 4",
      "DescribeTargetHealth 6",
    ]);
  });

  it("is registered again with each on all its ports, with one call", async () => {
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

  /** Deletes a target group and a load balancer, as a user may do. */
  function deleteSome(): void {
    balancers.groups.splice(0, 1);
    balancers.classics.splice(0, 1);
  }

  it("leaves the rest if a group and a load balancer were deleted before the notice", async () => {
    await stage.run({ machine: "i-00000000000000099" });
    deleteSome();
    expect((await stage.run(given)).detail).toMatch(/^deregistered from 5 groups/);
    expect(stage.standing()).toEqual(["i-00000000000000002:80"]);
  });

  it("is registered again with the rest if a group and a load balancer were deleted", async () => {
    const { undo } = await stage.run(given);
    deleteSome();
    expect((await stage.comeBack(undo, given)).detail).toBe(
      "registered again with 3 groups, 2 of 5 no longer exist",
    );
    expect(stage.standing()).toEqual(before.slice(2));
  });

  it("leaves the rest if it is terminated, so that its load balancer does not find it", async () => {
    await stage.run({ machine: "i-00000000000000099" });
    balancers.terminated.add(stage.instance.id);
    const { detail, undo } = await stage.run(given);
    expect(detail).toBe("deregistered from 5 groups");
    expect(stage.standing()).toEqual(["i-00000000000000002:80"]);
    expect((await stage.comeBack(undo, given)).detail).toBe(
      "registered again with 4 groups, 1 of 5 no longer exist",
    );
  });

  it("counts as drained if its group is deleted while it drains", async () => {
    for (const group of groups) group.drainMs = 60_000;
    balancers.groups.splice(1);
    balancers.classics.splice(0);
    const running = stage.runThrough({ ...given, waitMs: 30_000 });
    await stage.clock.advance(2000);
    balancers.groups.splice(0);
    expect(await running).toBe("deregistered from 1 group");
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
          ? /owner of \d+ could not be read/
          : new RegExp(`the permission .*${action}`),
      );
      const left = stage.standing().filter((target) => !target.startsWith("i-00000000000000002"));
      expect(left).toHaveLength(action === "DescribeTargetHealth" ? before.length - 1 : 0);
      expect(classic.instances.has(stage.instance.id)).toBe(action === "DescribeLoadBalancers");
    },
  );
});
