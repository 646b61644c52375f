import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SqsClient } from "../../src/cloud/aws/queue/sqs-client.ts";
import { realClock } from "../../src/runtime/real-clock.ts";
import { queueClientContract } from "../contract/queue-client.contract.ts";
import { freePort } from "../support/free-port.ts";
import { Moto } from "../support/moto.ts";

let moto: Moto;
const never = new AbortController().signal;
const former = { ...process.env };

beforeAll(async () => {
  moto = await Moto.start();
  Object.assign(process.env, moto.environment);
});

afterAll(async () => {
  process.env = former;
  await moto?.stop();
});

let queues = 0;

queueClientContract("the AWS SDK client for SQS, with moto,", async () => {
  queues += 1;
  await moto.makeQueue(`queue-${queues}`);
  return {
    client: clientOf(moto.queueUrl),
    send: (text) => moto.send(text),
    passHidden: () => pause(1100),
    close: async () => {},
  };
});

function clientOf(url: string, hasEndpoint = true): SqsClient {
  return new SqsClient({ url, clock: realClock, hasEndpoint });
}

describe("SqsClient", () => {
  test("reports a missing queue", async () => {
    await expect(clientOf(`${moto.url}/123456789012/none`).receive(never)).rejects.toMatchObject({
      code: "CLOUD_REFUSED",
      message: expect.stringContaining("--sqs-queue-url"),
    });
  });

  test("reports an unreachable endpoint", async () => {
    const url = `http://127.0.0.1:${await freePort()}/123456789012/notices`;
    const { AWS_ENDPOINT_URL } = process.env;
    process.env.AWS_ENDPOINT_URL = new URL(url).origin;
    await expect(clientOf(url).receive(never)).rejects.toMatchObject({ code: "CLOUD_UNREACHABLE" });
    process.env.AWS_ENDPOINT_URL = AWS_ENDPOINT_URL;
  });

  test("uses the host of the queue's URL if no endpoint is set", async () => {
    const { AWS_ENDPOINT_URL } = process.env;
    delete process.env.AWS_ENDPOINT_URL;
    await moto.makeQueue("by-url");
    await moto.send("hello");
    const [message] = await clientOf(moto.queueUrl, false).receive(never);
    expect(message?.text).toBe("hello");
    process.env.AWS_ENDPOINT_URL = AWS_ENDPOINT_URL;
  });
});
