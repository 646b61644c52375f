import { describe, expect, it } from "vitest";
import { Ec2Client } from "../../../../src/cloud/aws/ec2-client.ts";
import { addressesIn } from "../../../../src/cloud/aws/ec2-network.ts";
import { ec2NetworkContract } from "../../../contract/ec2-network.contract.ts";
import { useAwsEnvironment } from "../../../support/aws-environment.ts";
import { NetworkServer } from "../../../support/network-server.ts";

const never = new AbortController().signal;
useAwsEnvironment();

async function serve() {
  const server = await new NetworkServer().start();
  process.env.AWS_ENDPOINT_URL_EC2 = server.url;
  server.pageSize = 10;
  return { server, network: new Ec2Client({ region: "eu-west-1" }) };
}

ec2NetworkContract("the AWS SDK client for EC2", async () => {
  const { server, network } = await serve();
  let count = 0;
  return {
    network,
    addInstance: (interfaces) => {
      count += 1;
      const instance = server.addInstance(count);
      for (let place = 0; place < interfaces; place += 1) server.addInterface(instance);
      return instance.id;
    },
    operate: (id) => server.operated.add(id),
    addSecurityGroup: (id, vpc = "vpc-a") => server.securityGroups.set(id, vpc),
    groupsOf: (id) => server.interfaces.find((one) => one.id === id)?.groups ?? [],
    fail: (fault) => {
      server.fault = fault;
    },
    heal: () => {
      server.fault = undefined;
    },
    close: () => server.stop(),
  };
});

describe("Ec2Client", () => {
  it("returns an interface's addresses, including those of its prefixes", async () => {
    const { server, network } = await serve();
    const instance = server.addInstance(1);
    server.addInterface(instance, {
      addresses: ["10.0.1.7", "10.0.1.8"],
      prefixes: ["10.0.2.0/30"],
    });
    const [found] = await network.interfacesOf([instance.id], never);
    const prefix = ["10.0.2.0", "10.0.2.1", "10.0.2.2", "10.0.2.3"];
    expect(found?.addresses).toEqual(["10.0.1.7", "10.0.1.8", ...prefix]);
    await server.stop();
  });

  it("returns an instance's private DNS name", async () => {
    const { server, network } = await serve();
    const { id } = server.addInstance(7);
    expect(await network.instances([id], never)).toEqual([
      expect.objectContaining({ dnsName: "ip-10-0-1-7.eu-west-1.compute.internal" }),
    ]);
    await server.stop();
  });
});

describe("the addresses of a block", () => {
  it.each([
    ["10.0.2.16/28", 16, "10.0.2.16", "10.0.2.31"],
    ["10.0.2.16/32", 1, "10.0.2.16", "10.0.2.16"],
    ["10.0.2.0/24", 256, "10.0.2.0", "10.0.2.255"],
  ])("%s are %i", (block, count, first, last) => {
    const addresses = addressesIn(block);
    expect([addresses.length, addresses[0], addresses.at(-1)]).toEqual([count, first, last]);
  });

  it.each(["", "10.0.0.0/16", "10.0.2.16", "2001:db8::/80"])("%s are none", (block) => {
    expect(addressesIn(block)).toEqual([]);
  });
});
