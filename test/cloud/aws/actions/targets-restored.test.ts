import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { minutes, plus } from "../../../../src/core/time/time.ts";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import type { LoadBalancerServer } from "../../../support/load-balancer-server.ts";
import type { NetworkServer, ServedInstance } from "../../../support/network-server.ts";
import { TargetStage } from "../../../support/target-stage.ts";

useAwsEnvironment();

describe("a machine that was deregistered from its groups", () => {
  let stage: TargetStage;
  let balancers: LoadBalancerServer;
  let ec2: NetworkServer;
  let instance: ServedInstance;

  beforeEach(async () => {
    stage = await new TargetStage().start();
    ({ balancers, ec2, instance } = stage);
  });
  afterEach(() => stage.stop());

  it("is registered again as it was, with its QUIC server id and its zone", async () => {
    ec2.addInterface(instance, { addresses: ["10.0.1.1"] });
    const quicServerId = "0x00000000000000a1";
    const fast = balancers.addGroup("fast", {
      protocol: "TCP_QUIC",
      targets: [{ id: instance.id, port: 443, zone: "eu-west-1a", quicServerId }],
    });
    const peer = balancers.addGroup("peer", {
      ...{ type: "ip", isOutsideVpc: true },
      targets: [{ id: "10.9.1.7", port: 80, zone: "all" }],
    });
    const { undo } = await stage.run({ pods: ["10.9.1.7"] });
    expect(undo).toEqual({
      targets: [
        { targetGroupArn: fast.arn, id: instance.id, port: 443, quicServerId },
        { targetGroupArn: peer.arn, id: "10.9.1.7", port: 80, availabilityZone: "all" },
      ],
    });
    expect(stage.standing()).toEqual([]);
    // The next leader knows only the record.
    stage.runner = stage.freshRunner();
    await stage.comeBack(undo, { pods: ["10.9.1.7"] });
    expect(fast.targets).toMatchObject([{ id: instance.id, port: 443, quicServerId }]);
    expect(peer.targets).toMatchObject([{ id: "10.9.1.7", zone: "all" }]);
  });

  it("is registered again at each port and address, but not where it was draining", async () => {
    const six = "2001:db8:0:1::a";
    ec2.addInterface(instance, { addresses: ["10.0.1.1", six] });
    const [{ id }, other] = [instance, ec2.addInstance(7).id];
    const quic = (last: number) => `0x00000000000000a${last}`;
    balancers.addGroup("quic", {
      protocol: "QUIC",
      targets: [
        { id, port: 443, quicServerId: quic(1) },
        { id, port: 8443, quicServerId: quic(2) },
        { id: other, port: 443, quicServerId: quic(3) },
      ],
    });
    balancers.addGroup("six", {
      type: "ip",
      targets: [
        { id: six, port: 80, zone: "eu-west-1a" },
        { id: six, port: 8080, zone: "eu-west-1a" },
        { id: "2001:db8:0:1:7::2", port: 8080, zone: "eu-west-1b" },
        { id: "2001:db8:0:1:7::3", port: 8080, zone: "eu-west-1b" },
      ],
    });
    const everywhere = [{ id: "10.0.1.1", port: 6081, zone: "all" }];
    balancers.addGroup("outside", { type: "ip", isOutsideVpc: true, targets: everywhere });
    const drainedAt = plus(stage.clock.now(), minutes(5));
    balancers.addGroup("draining", { targets: [{ id, port: 6081, drainedAt }] });
    const registered = () =>
      balancers.groups.map(({ targets }) =>
        targets.map((one) => JSON.stringify(one, Object.keys(one).toSorted())).toSorted(),
      );
    const before = registered();
    const pods = ["10.0.1.1", six, "2001:db8:0:1:7::2"];
    const { undo } = await stage.run({ pods });
    expect(stage.standing()).toEqual([`${other}:443`, "2001:db8:0:1:7::3:8080"]);
    expect(undo?.targets).toHaveLength(6);
    stage.runner = stage.freshRunner();
    await stage.comeBack(undo, { pods });
    expect(registered()).toEqual(before);
  });
});
