import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseActionHosts } from "../../src/actions/action-hosts.ts";
import { HttpSender } from "../../src/actions/http-sender.ts";
import { type ActionServer, startActionServer } from "../support/action-server.ts";

const secret = "s3cret";
let server: ActionServer;
let asked: string[];

beforeEach(async () => {
  server = await startActionServer(() => ({ status: 200, body: { ok: true } }));
  asked = [];
});
afterEach(() => server.close());

/** A sender for which every name resolves to these addresses. */
function senderOf(
  hosts: string,
  addresses: readonly string[] = ["127.0.0.1"],
  env: Readonly<Record<string, string>> = {},
): HttpSender {
  const resolve = async (host: string) => {
    asked.push(host);
    if (addresses.length === 0) throw new Error(`getaddrinfo ENOTFOUND ${host}`);
    return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  return new HttpSender({ allowed: parseActionHosts(hosts), env, resolve });
}

function send(sender: HttpSender, url: string, signal = new AbortController().signal) {
  return sender.send({ what: "send to Slack", url, method: "POST", body: "{}" }, signal);
}

const port = () => new URL(server.url).port;

describe("a request of an action", () => {
  it("is sent to an allowed host, at the address that was checked", async () => {
    const sender = senderOf("hooks.test,127.0.0.1");
    const answer = await send(sender, `http://hooks.test:${port()}/x`);
    expect(answer).toMatchObject({ status: 200, body: '{"ok":true}' });
    // Resolved once: a second answer cannot lead elsewhere.
    expect(asked).toEqual(["hooks.test"]);
    expect(server.requests[0]?.headers.host).toBe(`hooks.test:${port()}`);
  });

  it.each([
    ["a host that is not allowed", "other.test", "http://hooks.test/x", ["10.0.0.1"]],
    ["a URL without a host", "", "http://hooks.test/x", ["10.0.0.1"]],
    ["a name that resolves to loopback", "hooks.test", "http://hooks.test/x", ["127.0.0.1"]],
    [
      "a name that resolves to the metadata service",
      "hooks.test",
      "http://hooks.test/x",
      ["169.254.169.254"],
    ],
    [
      "a name with one forbidden address of two",
      "hooks.test",
      "http://hooks.test/x",
      ["10.0.0.1", "::1"],
    ],
    ["an address", "*.test", "http://169.254.169.254/latest", []],
    ["an address in another notation", "*.test", "http://0x7f.1/", []],
    ["an address as a number", "*.test", "http://2130706433/", []],
    ["an address in octal", "*.test", "http://0177.0.0.1/", []],
    ["an address with a trailing dot", "*.test", "http://127.0.0.1./", []],
    ["the unspecified address", "*.test", "http://0.0.0.0/", []],
    ["a name of loopback", "*.test", "http://localhost./", ["127.0.0.1"]],
    [
      "the metadata service by its name",
      "metadata.google.internal",
      "http://metadata.google.internal./computeMetadata/v1/",
      ["169.254.169.254"],
    ],
    [
      "the metadata service of an unknown address by a wildcard",
      "*.internal",
      "http://METADATA.google.internal/computeMetadata/v1/",
      ["10.0.0.1"],
    ],
    ["an IPv4 address mapped to IPv6", "*.test", "http://[::ffff:169.254.169.254]/", []],
    ["a URL with a password", "hooks.test", `http://me:${secret}@hooks.test/`, ["10.0.0.1"]],
    ["another scheme", "hooks.test", "ftp://hooks.test/", ["10.0.0.1"]],
  ])("is not sent to %s", async (_, hosts, url, addresses) => {
    await expect(send(senderOf(hosts, addresses), url)).rejects.toMatchObject({
      code: "ACTION_HOST_FORBIDDEN",
      retryable: false,
    });
    expect(server.requests).toEqual([]);
  });

  it("does not follow a redirect", async () => {
    server.override = (response) => {
      response.writeHead(307, { location: "http://169.254.169.254/latest" });
      response.end();
    };
    const answer = await send(senderOf("127.0.0.1"), server.url);
    expect(answer.status).toBe(307);
    expect(server.requests).toEqual([]);
  });

  it("gets the time to retry after, if the response has one", async () => {
    const asked = async (value: string, date = "Tue, 24 Nov 2026 11:59:30 GMT") => {
      server.override = (response) => {
        response.writeHead(429, { "retry-after": value, date });
        response.end();
      };
      return (await send(senderOf("127.0.0.1"), server.url)).retryAfterMs;
    };
    expect(await asked("7")).toBe(7000);
    expect(await asked("1.5")).toBe(1500);
    // By the receiver's clock, whatever the local one shows.
    expect(await asked("Tue, 24 Nov 2026 12:00:00 GMT")).toBe(30_000);
    expect(await asked("Tue, 24 Nov 2026 11:00:00 GMT")).toBeUndefined();
    expect(await asked("Tue, 24 Nov 2026 12:00:00 GMT", "now")).toBeUndefined();
    expect(await asked("soon")).toBeUndefined();
    expect(await asked("-1")).toBeUndefined();
  });

  it("reads no more than 8 MiB of a response", async () => {
    server.override = (response) => {
      response.writeHead(200);
      const part = "x".repeat(1024 * 1024);
      const more = () => {
        while (!response.destroyed && response.write(part));
      };
      response.on("drain", more);
      more();
    };
    await expect(send(senderOf("127.0.0.1"), server.url)).rejects.toMatchObject({
      code: "ACTION_ANSWER_INVALID",
      message: "Cannot send to Slack: its response is over 8 MiB",
    });
  });

  it("ends with its signal, before a response or during one", async () => {
    for (const begins of [false, true]) {
      const over = new AbortController();
      const reason = new Error("its time is up");
      server.override = (response) => {
        if (begins) response.write("{");
        over.abort(reason);
      };
      await expect(send(senderOf("127.0.0.1"), server.url, over.signal)).rejects.toBe(reason);
    }
  });

  it.each([
    ["refuses the connection", ["127.0.0.1"], "hooks.test,127.0.0.1"],
    ["has an unknown name", [], "hooks.test"],
  ])(
    "to a host that %s can be retried, and its error shows no secret",
    async (_, addresses, hosts) => {
      await server.close();
      const url = `http://hooks.test:${port()}/services/${secret}`;
      const fault = await send(senderOf(hosts, addresses), url).catch((error: unknown) => error);
      expect(fault).toMatchObject({ code: "ACTION_UNREACHABLE", retryable: true });
      expect((fault as Error).message).toContain("hooks.test");
      expect((fault as Error).message).not.toContain(secret);
    },
  );

  it("uses the proxy of the environment, unless NO_PROXY names its host", async () => {
    const proxied: string[] = [];
    const proxy = createServer((request, response) => {
      proxied.push(request.url ?? "");
      response.end("by proxy");
    });
    proxy.on("connect", (request, socket) => {
      proxied.push(request.url ?? "");
      const to = connect(Number(port()), "127.0.0.1");
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(to).pipe(socket);
    });
    await new Promise<void>((resolve) => {
      proxy.listen(0, "127.0.0.1", resolve);
    });
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const env = { HTTP_PROXY: address, NO_PROXY: "inside.test" };
    await send(senderOf("hooks.test", ["10.0.0.1"], env), "http://hooks.test/x");
    expect(proxied).toEqual([expect.stringContaining("hooks.test")]);
    // A name that only the proxy can resolve is left to the proxy; others are still checked.
    await send(senderOf("hooks.test", [], env), "http://hooks.test/x");
    expect(proxied).toHaveLength(2);
    const metadata = send(senderOf("hooks.test", ["169.254.169.254"], env), "http://hooks.test/x");
    await expect(metadata).rejects.toMatchObject({ code: "ACTION_HOST_FORBIDDEN" });
    await send(
      senderOf("inside.test,127.0.0.1", ["127.0.0.1"], env),
      `http://inside.test:${port()}`,
    );
    expect(proxied).toHaveLength(2);
    proxy.closeAllConnections();
    proxy.close();
  });
});
