import { describe, expect, it } from "vitest";
import { Ec2Client } from "../../../src/cloud/aws/ec2-client.ts";
import { ec2Contract } from "../../contract/ec2.contract.ts";
import { useAwsEnvironment } from "../../support/aws-environment.ts";
import { Ec2Server } from "../../support/ec2-server.ts";

const never = new AbortController().signal;

useAwsEnvironment();

async function serve(): Promise<{ readonly server: Ec2Server; readonly ec2: Ec2Client }> {
  const server = await new Ec2Server().start();
  process.env.AWS_ENDPOINT_URL_EC2 = server.url;
  return { server, ec2: new Ec2Client({ region: "eu-west-1" }) };
}

ec2Contract("the AWS SDK client for EC2", async () => {
  const { server, ec2 } = await serve();
  server.pageSize = 10;
  return {
    ec2,
    schedule: (...events) => server.events.push(...events),
    operate: (instance) => server.managed.add(instance),
    tag: (instance, tags) => server.tags.set(instance, tags),
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
  it("rejects HTML as a response", async () => {
    const { server, ec2 } = await serve();
    server.fault = "Garbage";
    const refused = { code: "CLOUD_UNREACHABLE", message: expect.stringContaining("no list") };
    await expect(ec2.scheduledEvents(never)).rejects.toMatchObject(refused);
    await expect(ec2.tagged({ key: "team" }, never)).rejects.toMatchObject(refused);
    await server.stop();
  });

  it("reads no page twice if that names itself as the next one", async () => {
    const { server, ec2 } = await serve();
    server.tags.set("i-00000000000000001", { team: "a" });
    server.pageSize = 0;
    await expect(ec2.tagged({ key: "team" }, never)).rejects.toMatchObject({
      ...{ code: "CLOUD_UNREACHABLE", message: expect.stringContaining("the page that it is") },
    });
    expect(server.actions).toHaveLength(2);
    await server.stop();
  });

  it("lists the whole region with one request per page", async () => {
    const { server, ec2 } = await serve();
    const code = "system-reboot";
    server.events = Array.from({ length: 1500 }, (_, place) => ({
      ...{ instance: `i-${String(place).padStart(17, "0")}`, id: `event-${place}`, code },
    }));
    expect(await ec2.scheduledEvents(never)).toHaveLength(1500);
    expect(server.actions).toEqual(["DescribeInstanceStatus", "DescribeInstanceStatus"]);
    await server.stop();
  });

  it("fails with the signal's reason", async () => {
    const { server, ec2 } = await serve();
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(ec2.scheduledEvents(signal)).rejects.toThrow("enough");
    await server.stop();
  });
});
