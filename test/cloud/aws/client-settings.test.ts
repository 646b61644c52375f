import http from "node:http";
import {
  DescribeTargetGroupsCommand,
  ElasticLoadBalancingV2Client,
} from "@aws-sdk/client-elastic-load-balancing-v2";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { clientSettings } from "../../../src/cloud/aws/aws-client.ts";
import { Ec2Client } from "../../../src/cloud/aws/ec2-client.ts";
import { hours, millis, minutes } from "../../../src/core/time/time.ts";
import { useAwsEnvironment } from "../../support/aws-environment.ts";
import { json, type Script, ScriptedServer } from "../../support/scripted-server.ts";
import { waitUntil } from "../../support/wait-until.ts";

useAwsEnvironment();

const group = "<member><TargetGroupArn>arn:aws:a</TargetGroupArn></member>";
const head =
  '<DescribeTargetGroupsResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/"><DescribeTargetGroupsResult><TargetGroups>';
const tail = "</TargetGroups></DescribeTargetGroupsResult></DescribeTargetGroupsResponse>";

describe("a response from AWS", () => {
  let server: ScriptedServer | undefined;

  afterEach(() => server?.stop());

  async function ask(
    script: Script,
    {
      limitMs = 10_000,
      maxAttempts = 1,
      at,
    }: { limitMs?: number; maxAttempts?: number; at?: string } = {},
  ) {
    server = await new ScriptedServer((request, response, turn) => {
      response.writeHead(200, { "content-type": "text/xml" });
      return script(request, response, turn);
    }).start();
    const answerLimitMs = millis(limitMs);
    const client = new ElasticLoadBalancingV2Client({
      ...clientSettings({ region: "eu-west-1", answerLimitMs, maxAttempts }),
      endpoint: at ?? server.url,
    });
    const { TargetGroups = [] } = await client.send(new DescribeTargetGroupsCommand({}));
    return TargetGroups.length;
  }

  it("may arrive in many parts", async () => {
    const groups = await ask(async (_, response) => {
      response.write(head);
      for (let part = 0; part < 5000; part += 1) {
        if (!response.write(group)) await new Promise((resolve) => response.once("drain", resolve));
      }
      response.end(tail);
    });
    expect(groups).toBe(5000);
  });

  it("that stops halfway is given up", async () => {
    const half = ask((_, response) => void response.write(head), { limitMs: 300 });
    await expect(half).rejects.toThrow("the response is incomplete after 0.3 s");
  });

  it("that stops halfway is requested again", async () => {
    const again: Script = (_, response, turn) => {
      response.write(head);
      if (turn === 2) response.end(group + tail);
    };
    const groups = await ask(again, { limitMs: 300, maxAttempts: 2 });
    expect(groups).toBe(1);
  });

  it("that trickles in without an end is given up", async () => {
    const drop: Script = (_, response) => {
      response.write(head);
      const dropping = setInterval(() => response.write(group), 20);
      response.on("close", () => clearInterval(dropping));
    };
    await expect(ask(drop, { limitMs: 300 })).rejects.toThrow(
      "the response is incomplete after 0.3 s",
    );
  });

  it("is not read to its end if it is over 32 MiB", async () => {
    const mebibyte = " ".repeat(1024 * 1024);
    let sent = 0;
    const endless = ask((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write(mebibyte)) sent += 1;
      };
      response.on("drain", more);
      more();
    });
    await expect(endless).rejects.toThrow("the response is over 32 MiB");
    expect(sent).toBeLessThan(64);
  });

  it("is requested through the proxy of Node's global agent", async () => {
    const former = http.globalAgent;
    const seen: string[] = [];
    const proxy = await new ScriptedServer(({ url }, response) => {
      seen.push(url);
      response.end(head + group + tail);
    }).start();
    http.globalAgent = new http.Agent({ proxyEnv: { HTTP_PROXY: proxy.url } });
    try {
      expect(await ask(() => undefined, { at: "http://elb.invalid" })).toBe(1);
    } finally {
      http.globalAgent = former;
      await proxy.stop();
    }
    expect(seen).toEqual(["http://elb.invalid/"]);
  });
});

describe("the credentials of a client", () => {
  const none = "<DescribeInstancesResponse><reservationSet/></DescribeInstancesResponse>";
  let source: ScriptedServer;
  let aws: ScriptedServer;
  let isHanging: boolean;
  /** Sends the responses that were held while it was hanging. */
  let held: (() => void)[];
  let firstValidMs: number;

  beforeEach(async () => {
    held = [];
    [isHanging, firstValidMs] = [false, hours(6)];
    // As of EKS Pod Identity.
    source = await new ScriptedServer((_, response, turn) => {
      const Expiration = new Date(
        Date.now() + (turn === 1 ? firstValidMs : hours(6)),
      ).toISOString();
      const keys = { AccessKeyId: `key-${turn}`, SecretAccessKey: "s", Token: "t" };
      const send = () => json(response, 200, { ...keys, Expiration });
      if (isHanging) held.push(send);
      else send();
    }).start();
    aws = await new ScriptedServer((_, response) => void response.end(none)).start();
    vi.stubEnv("AWS_CONTAINER_CREDENTIALS_FULL_URI", `${source.url}/v1/credentials`);
    vi.stubEnv("AWS_ENDPOINT_URL_EC2", aws.url);
    vi.stubEnv("AWS_EC2_METADATA_DISABLED", "true");
    vi.stubEnv("AWS_ACCESS_KEY_ID", undefined);
  });
  afterEach(async () => {
    // A request that fails would be repeated, to the source of the next test.
    await respond();
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
    await source.stop();
    await aws.stop();
  });

  async function respond(): Promise<void> {
    for (const send of held.splice(0)) send();
    const areRead = async () => source.sockets.size === 0;
    await waitUntil(areRead, { what: "the responses are read", timeoutMs: 5000 });
  }

  /** Ends the limits of all credentials that are being looked for, without the wait. */
  function limits(): { readonly spans: readonly number[]; end(): void } {
    const made: { readonly ms: number; readonly over: AbortController }[] = [];
    vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
      const over = new AbortController();
      made.push({ ms, over });
      return over.signal;
    });
    return {
      get spans() {
        return made.map(({ ms }) => ms);
      },
      end: () => {
        for (const { over } of made) over.abort();
      },
    };
  }

  async function hung(count: number): Promise<void> {
    const isAsked = async () => held.length === count;
    await waitUntil(isAsked, { what: "the source is asked", timeoutMs: 15_000, intervalMs: 5 });
  }

  const askWith = (client: Ec2Client) =>
    client.instances(["i-0123456789abcdef0"], new AbortController().signal);

  it("are looked for again if their source has not responded within five seconds", async () => {
    isHanging = true;
    const client = new Ec2Client({ region: "eu-west-1" });
    const limited = limits();
    const asked = Promise.allSettled([askWith(client), askWith(client)]);
    await hung(1);
    limited.end();
    const ends = await asked;
    // Once for both requests, and not again for the client's own second attempts.
    expect(limited.spans).toEqual([5000]);
    vi.restoreAllMocks();
    const message =
      'Cannot call ec2:DescribeInstances: found TimeoutError, "no credentials within 5 s", expected a response from the source of the credentials';
    const reason = { code: "CLOUD_UNREACHABLE", retryable: true, message };
    expect(ends).toMatchObject([{ reason }, { reason }]);
    expect(source.seen).toHaveLength(1);
    isHanging = false;
    expect(await askWith(client)).toEqual([]);
    expect(aws.seen).toHaveLength(1);
  });

  it("that are found too late for a request are used by the next", async () => {
    isHanging = true;
    const client = new Ec2Client({ region: "eu-west-1" });
    const limited = limits();
    const asked = expect(askWith(client)).rejects.toMatchObject({ code: "CLOUD_UNREACHABLE" });
    await hung(1);
    limited.end();
    await asked;
    vi.restoreAllMocks();
    await respond();
    expect(await askWith(client)).toEqual([]);
    expect(source.seen).toHaveLength(1);
  });

  it("are looked for once, and not for each request", async () => {
    const client = new Ec2Client({ region: "eu-west-1" });
    for (let count = 0; count < 3; count += 1) await askWith(client);
    await Promise.all([askWith(client), askWith(client)]);
    expect(aws.seen).toHaveLength(5);
    expect(source.seen).toHaveLength(1);
  });

  it("are renewed beside the requests before they expire", async () => {
    firstValidMs = minutes(4);
    const client = new Ec2Client({ region: "eu-west-1" });
    await askWith(client);
    await waitUntil(async () => source.seen.length === 2, { what: "renewed", timeoutMs: 5000 });
    isHanging = true;
    await askWith(client);
    await askWith(client);
    expect(source.seen).toHaveLength(2);
    expect(aws.seen.at(-1)?.headers.authorization).toContain("Credential=key-2/");
  });
});
