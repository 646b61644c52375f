import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parseComputeEndpoint } from "../../../src/cloud/gcp/compute-client.ts";
import { googleTokens } from "../../../src/cloud/gcp/compute-engine.ts";

const cloud = parseComputeEndpoint("https://compute.googleapis.com");
const loopback = parseComputeEndpoint("http://127.0.0.1:1");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-gcp-"));
  // A gcloud login of the user who runs the tests must not be found.
  vi.stubEnv("HOME", folder);
  vi.stubEnv("CLOUDSDK_CONFIG", folder);
  vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", "");
  vi.stubEnv("METADATA_SERVER_DETECTION", "none");
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

function keyFile(content: string): string {
  const path = join(folder, "key.json");
  writeFileSync(path, content);
  vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", path);
  return path;
}

function faultOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => "nothing was thrown",
    (error: unknown) => error,
  );
}

describe("without credentials", () => {
  it("requests to a loopback endpoint need no token", async () => {
    expect(await googleTokens({ endpoint: loopback, keyFile: undefined }).token()).toBe(undefined);
  });

  it("requests to the cloud fail for lack of a token", async () => {
    const tokens = googleTokens({ endpoint: cloud, keyFile: undefined });
    expect(await faultOf(tokens.token())).toMatchObject({
      code: "CLOUD_CREDENTIALS",
      retryable: true,
      message:
        "Cannot get a Google access token: found neither a key file nor a metadata server that responds, expected Workload Identity or a key file in GOOGLE_APPLICATION_CREDENTIALS",
    });
  });
});

describe("in a cluster with Workload Identity", () => {
  let metadata: Server;
  let asked: { url: string; flavor: unknown }[];
  let answer: { status: number; body: unknown };

  beforeEach(async () => {
    asked = [];
    answer = {
      status: 200,
      body: { access_token: "ya29.one", expires_in: 3599, token_type: "Bearer" },
    };
    metadata = createServer((request, response) => {
      asked.push({ url: request.url ?? "", flavor: request.headers["metadata-flavor"] });
      response.writeHead(answer.status, {
        "metadata-flavor": "Google",
        "content-type": "application/json",
      });
      response.end(JSON.stringify(answer.body));
    });
    await new Promise<void>((resolve) => metadata.listen(0, "127.0.0.1", resolve));
    const { port } = metadata.address() as AddressInfo;
    vi.stubEnv("GCE_METADATA_HOST", `127.0.0.1:${port}`);
    vi.stubEnv("METADATA_SERVER_DETECTION", "assume-present");
  });
  afterEach(() => new Promise((resolve) => metadata.close(resolve)));

  it("the token comes from the metadata server, and is kept until it is rejected", async () => {
    const tokens = googleTokens({ endpoint: cloud, keyFile: undefined });
    expect(await tokens.token()).toBe("ya29.one");
    expect(await tokens.token()).toBe("ya29.one");
    expect(asked).toHaveLength(1);
    expect(asked[0]?.flavor).toBe("Google");
    expect(decodeURIComponent(asked[0]?.url ?? "")).toBe(
      "/computeMetadata/v1/instance/service-accounts/default/token?scopes=https://www.googleapis.com/auth/compute",
    );
    tokens.forget();
    await tokens.token();
    expect(asked).toHaveLength(2);
  });

  it.each([
    ["refuses the connection", 0],
    ["answers 503", 503],
  ])("a metadata server that %s is a retryable fault", async (_, status) => {
    answer = { status, body: "away" };
    // As in a cluster: only a request shows whether there is a metadata server.
    vi.stubEnv("METADATA_SERVER_DETECTION", "");
    if (status === 0) vi.stubEnv("GCE_METADATA_HOST", "127.0.0.1:1");
    const tokens = googleTokens({ endpoint: cloud, keyFile: undefined });
    expect(await faultOf(tokens.token())).toMatchObject({ retryable: true });
  });

  it("a service account that may not be used is a credentials fault", async () => {
    answer = { status: 403, body: "forbidden" };
    const tokens = googleTokens({ endpoint: cloud, keyFile: undefined });
    expect(await faultOf(tokens.token())).toMatchObject({
      code: "CLOUD_CREDENTIALS",
      retryable: false,
      message: expect.stringContaining("found that the token service responded with 403"),
    });
  });
});

describe("with a key file", () => {
  it("for a federation, the external token is exchanged for one with a single scope", async () => {
    let sent = new URLSearchParams();
    const exchange = createServer(async (request, response) => {
      sent = new URLSearchParams(await text(request));
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ access_token: "ya29.two", expires_in: 3599 }));
    });
    await new Promise<void>((resolve) => exchange.listen(0, "127.0.0.1", resolve));
    const outside = join(folder, "outside-token");
    writeFileSync(outside, "outside");
    const { port } = exchange.address() as AddressInfo;
    const path = keyFile(
      JSON.stringify({
        type: "external_account",
        audience:
          "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
        subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
        token_url: `http://127.0.0.1:${port}/v1/token`,
        credential_source: { file: outside },
      }),
    );
    // An explicit key file is used on loopback too.
    expect(await googleTokens({ endpoint: loopback, keyFile: path }).token()).toBe("ya29.two");
    expect(sent.get("subject_token")).toBe("outside");
    expect(sent.get("scope")).toBe("https://www.googleapis.com/auth/compute");
    exchange.closeAllConnections();
    await new Promise((resolve) => exchange.close(resolve));
  });

  it("that does not exist, the fault says that the file is unreadable", async () => {
    const path = join(folder, "none.json");
    vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", path);
    expect(await faultOf(googleTokens({ endpoint: cloud, keyFile: path }).token())).toMatchObject({
      code: "CLOUD_CREDENTIALS",
      message: expect.stringContaining("file of GOOGLE_APPLICATION_CREDENTIALS is unreadable"),
    });
  });

  it.each([
    ["torn", '{"private_key": "s3cret-s3cret", '],
    [
      "with an invalid key",
      '{"type":"service_account","client_email":"a@b","private_key":"s3cret-s3cret"}',
    ],
    ["of an unknown type", '{"type":"s3cret-s3cret"}'],
  ])(
    "%s, the fault names the credentials and quotes nothing from the file",
    async (_name, content) => {
      const path = keyFile(content);
      const fault = await faultOf(googleTokens({ endpoint: cloud, keyFile: path }).token());
      expect(fault).toMatchObject({ code: "CLOUD_CREDENTIALS", retryable: false });
      const { message, stack, cause } = fault as Error;
      expect(`${message} ${stack} ${JSON.stringify(cause)}`).not.toContain("s3cret");
    },
  );
});
