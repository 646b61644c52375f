import http from "node:http";
import {
  DescribeTargetGroupsCommand,
  ElasticLoadBalancingV2Client,
} from "@aws-sdk/client-elastic-load-balancing-v2";
import { afterEach, describe, expect, it } from "vitest";
import { clientSettings } from "../../../src/cloud/aws/aws-client.ts";
import { millis } from "../../../src/core/time/time.ts";
import { useAwsEnvironment } from "../../support/aws-environment.ts";
import { type Script, ScriptedServer } from "../../support/scripted-server.ts";

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
