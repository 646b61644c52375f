import { createHash, createHmac } from "node:crypto";
import {
  DeregisterTargetsCommand,
  DescribeTargetGroupsCommand,
  ElasticLoadBalancingV2Client,
} from "@aws-sdk/client-elastic-load-balancing-v2";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type QueryEndpoint, QuerySender } from "../../../../src/cloud/aws/actions/query-sender.ts";
import { ScriptedServer, type SeenRequest } from "../../../support/scripted-server.ts";

const never = new AbortController().signal;
const secretAccessKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const service = "elasticloadbalancing";
const arn = "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/web/0123456789abcdef";

let status: number;
/** What a proxy answers in AWS's place. */
let page: string | undefined;
let server: ScriptedServer;
let client: ElasticLoadBalancingV2Client;
let sender: QuerySender;

beforeEach(async () => {
  status = 200;
  page = undefined;
  server = await new ScriptedServer(({ body }, response) => {
    const action = new URLSearchParams(body).get("Action");
    response.writeHead(status, { "content-type": "text/xml" });
    response.end(page ?? `<${action}Response><${action}Result/></${action}Response>`);
  }).start();
  client = new ElasticLoadBalancingV2Client({
    ...{ region: "eu-west-1", endpoint: server.url, maxAttempts: 1 },
    credentials: { accessKeyId: "AKIDEXAMPLE", secretAccessKey, sessionToken: "token" },
  });
  sender = new QuerySender({ ...client.config, service, version: "2015-12-01" });
  client.middlewareStack.add(
    (next) => (args) => {
      sender.follow(args.request as QueryEndpoint);
      return next(args);
    },
    { step: "finalizeRequest" },
  );
});

afterEach(async () => {
  client.destroy();
  await server.stop();
});

const deregistration = [
  "DeregisterTargets",
  { TargetGroupArn: arn, "Targets.member.1.Id": "i-1", "Targets.member.1.Port": "8080" },
  never,
] as const;

/** A request's signature. Source: AWS, "Create a signed AWS API request". */
function signatureOf({ method, headers, body }: SeenRequest): string {
  const { authorization = "" } = headers;
  const [, scope = "", names = ""] =
    /Credential=[^/]+\/([^,]+), SignedHeaders=([^,]+),/.exec(authorization) ?? [];
  const signed = names.split(";").map((name) => `${name}:${headers[name]}\n`);
  const bodyHash = createHash("sha256").update(body).digest("hex");
  const canonical = [method, "/", "", signed.join(""), names, bodyHash].join("\n");
  const hash = createHash("sha256").update(canonical).digest("hex");
  const key = scope
    .split("/")
    .reduce<string | Buffer>(
      (secret, part) => createHmac("sha256", secret).update(part).digest(),
      `AWS4${secretAccessKey}`,
    );
  const text = ["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hash].join("\n");
  return createHmac("sha256", key).update(text).digest("hex");
}

describe("QuerySender", () => {
  it("sends the same form as the client, signed for the same service and region", async () => {
    await client.send(
      new DeregisterTargetsCommand({ TargetGroupArn: arn, Targets: [{ Id: "i-1", Port: 8080 }] }),
    );
    expect(await sender.isAccepted(...deregistration)).toBe(true);
    const [byClient, own] = server.seen as [SeenRequest, SeenRequest];
    const formOf = ({ body }: SeenRequest) => Object.fromEntries(new URLSearchParams(body));
    expect(formOf(own)).toEqual(formOf(byClient));
    const scopeOf = ({ headers }: SeenRequest) =>
      /Credential=\S+\/(eu-west-1\/\S+),/.exec(headers.authorization ?? "")?.[1];
    expect(scopeOf(own)).toBe(scopeOf(byClient));
    for (const request of [byClient, own]) {
      expect(request.headers.authorization).toContain(`Signature=${signatureOf(request)}`);
      expect(request.headers["x-amz-security-token"]).toBe("token");
    }
  });

  it("sends nothing while the client has not used an endpoint", async () => {
    expect(await sender.isAccepted(...deregistration)).toBe(false);
    expect(server.seen).toEqual([]);
  });

  it.each([400, 403, 429, 500, 503])(
    "reports a response with status %i as not accepted",
    async (refused) => {
      await client.send(new DescribeTargetGroupsCommand({}));
      status = refused;
      expect(await sender.isAccepted(...deregistration)).toBe(false);
    },
  );

  it.each(["", "<html><body>Sign in</body></html>", "<DescribeTagsResponse/>"])(
    "reports a response with status 200 and another content as not accepted: %s",
    async (content) => {
      await client.send(new DescribeTargetGroupsCommand({}));
      page = content;
      expect(await sender.isAccepted(...deregistration)).toBe(false);
    },
  );

  it("reports a lost connection as not accepted", async () => {
    await client.send(new DescribeTargetGroupsCommand({}));
    await server.stop();
    expect(await sender.isAccepted(...deregistration)).toBe(false);
  });

  it("rejects with the reason of the signal", async () => {
    await client.send(new DescribeTargetGroupsCommand({}));
    const stop = new AbortController();
    stop.abort(new Error("over"));
    const [action, fields] = deregistration;
    await expect(sender.isAccepted(action, fields, stop.signal)).rejects.toThrow("over");
  });

  it("uses a socket again, whatever the status", async () => {
    await client.send(new DescribeTargetGroupsCommand({}));
    for (status of [200, 400, 200]) await sender.isAccepted(...deregistration);
    expect(new Set(server.seen.map(({ connection }) => connection))).toEqual(new Set([1]));
  });
});
