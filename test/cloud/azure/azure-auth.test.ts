import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { azureTokens } from "../../../src/cloud/azure/azure-compute.ts";
import { parseApiEndpoint } from "../../../src/cloud/release/rest-exchange.ts";
import { entraResponse, type TokenRequest } from "../../support/entra-service.ts";

const endpoint = parseApiEndpoint("--azure-endpoint", "https://management.azure.com");
const jwt = "header.of-the-pod.signature";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lastcall-azure-"));
  writeFileSync(join(folder, "token"), jwt);
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A token service that gives this answer and records its requests. */
function service(answer: (turn: number, request: TokenRequest) => Response | Error) {
  const asked: TokenRequest[] = [];
  const send = (async (url: string, init: RequestInit = {}) => {
    const request = {
      url: String(url),
      body: new URLSearchParams(String(init.body ?? "")),
      headers: new Headers(init.headers),
    };
    asked.push(request);
    const given = answer(asked.length, request);
    if (given instanceof Error) throw given;
    return given;
  }) as typeof fetch;
  return { asked, send };
}

const granted = (turn: number, request: TokenRequest) => entraResponse(request, `token-${turn}`);

/** The environment that AKS's webhook sets. */
function workload(more: Readonly<Record<string, string>> = {}) {
  return {
    AZURE_CLIENT_ID: "11111111-0000-4000-8000-000000000000",
    AZURE_TENANT_ID: "22222222-0000-4000-8000-000000000000",
    AZURE_FEDERATED_TOKEN_FILE: join(folder, "token"),
    AZURE_AUTHORITY_HOST: "https://login.microsoftonline.com/",
    ...more,
  };
}

describe("Workload Identity", () => {
  it("exchanges the pod's token at the tenant, once while the result is valid", async () => {
    const { asked, send } = service(granted);
    const tokens = azureTokens({ endpoint, env: workload(), fetch: send });
    expect(await tokens.token()).toBe("token-1");
    expect(await tokens.token()).toBe("token-1");
    const [exchange, ...others] = asked;
    expect(others).toEqual([]);
    expect(exchange?.url).toMatch(
      "https://login.microsoftonline.com/22222222-0000-4000-8000-000000000000/oauth2/v2.0/token",
    );
    expect(Object.fromEntries(exchange?.body ?? [])).toMatchObject({
      grant_type: "client_credentials",
      client_assertion: jwt,
      scope: expect.stringContaining("https://management.azure.com/.default"),
    });
  });

  it("reads the file again once its token was rejected", async () => {
    const { asked, send } = service(granted);
    const tokens = azureTokens({ endpoint, env: workload(), fetch: send });
    await tokens.token();
    writeFileSync(join(folder, "token"), "rotated");
    tokens.forget();
    expect(await tokens.token()).toBe("token-2");
    expect(asked[1]?.body.get("client_assertion")).toBe("rotated");
  });

  it("signs in to the US government cloud for its own Resource Manager", async () => {
    const { asked, send } = service(granted);
    const env = workload({ AZURE_AUTHORITY_HOST: "https://login.microsoftonline.us/" });
    await azureTokens({ endpoint, env, fetch: send }).token();
    expect(asked[0]?.url).toContain("https://login.microsoftonline.us/");
    expect(asked[0]?.body.get("scope")).toContain("https://management.usgovcloudapi.net/.default");
  });

  it.each([
    ["Entra's error code", 401, "AADSTS700212: No matching federated identity", "AADSTS700212"],
    ["no Entra error code", 400, "something", "credentials that cannot be used"],
  ])(
    "that is rejected is reported with %s, and without the token",
    async (_, status, said, told) => {
      const refused = { error: "invalid_client", error_description: `${said} for ${jwt}` };
      const { send } = service(() => Response.json(refused, { status }));
      const fault = await azureTokens({ endpoint, env: workload(), fetch: send })
        .token()
        .catch((error: unknown) => error);
      expect(fault).toMatchObject({ code: "CLOUD_CREDENTIALS", retryable: false });
      expect(String(fault)).toContain(told);
      expect(String(fault)).not.toContain(jwt);
    },
  );

  it.each([
    [503, "temporarily_unavailable", "AADSTS90033: A transient error", "503 (AADSTS90033)"],
    [429, "temporarily_unavailable", "AADSTS90055: too many requests", "429 (AADSTS90055)"],
    [429, "invalid_client", "slow down", "429 (invalid_client)"],
    [500, "server_error", "oops", "500 (server_error)"],
    [400, "temporarily_unavailable", "AADSTS90033: A transient error", "400 (AADSTS90033)"],
  ])(
    "that is not exchanged for now, by %i %s, is a retryable fault",
    async (status, error, said, told) => {
      const { send } = service(() => Response.json({ error, error_description: said }, { status }));
      const fault = await azureTokens({ endpoint, env: workload(), fetch: send })
        .token()
        .catch((thrown: unknown) => thrown);
      expect(fault).toMatchObject({ code: "CLOUD_UNREACHABLE", retryable: true });
      expect(String(fault)).toContain(`the token service responded with ${told}`);
    },
  );

  it("that cannot be reached is a retryable fault", async () => {
    const { send } = service(() => new TypeError("fetch failed"));
    await expect(
      azureTokens({ endpoint, env: workload(), fetch: send }).token(),
    ).rejects.toMatchObject({ code: "CLOUD_UNREACHABLE", retryable: true });
  });

  it("without its file or its IDs names what is missing", async () => {
    const { send } = service(granted);
    const gone = workload({ AZURE_FEDERATED_TOKEN_FILE: join(folder, "gone") });
    await expect(azureTokens({ endpoint, env: gone, fetch: send }).token()).rejects.toThrow(
      "the file of AZURE_FEDERATED_TOKEN_FILE is unreadable",
    );
    const half = { AZURE_FEDERATED_TOKEN_FILE: join(folder, "token") };
    await expect(azureTokens({ endpoint, env: half, fetch: send }).token()).rejects.toThrow(
      "without AZURE_CLIENT_ID and AZURE_TENANT_ID",
    );
  });
});

describe("a managed identity", () => {
  // The library keeps its first connection for the life of the process.
  const { asked, send } = service((turn) =>
    Response.json({
      token_type: "Bearer",
      expires_on: String(Math.floor(Date.now() / 1000) + 86_000),
      access_token: `token-${turn}`,
    }),
  );
  beforeEach(() => asked.splice(0));

  it("is requested from the machine's metadata if no token file is named", async () => {
    const env = { AZURE_CLIENT_ID: "11111111-0000-4000-8000-000000000000" };
    expect(await azureTokens({ endpoint, env, fetch: send }).token()).toBe("token-1");
    const { origin, pathname, searchParams } = new URL(asked[0]?.url ?? "");
    expect(origin + pathname).toBe("http://169.254.169.254/metadata/identity/oauth2/token");
    expect(searchParams.get("resource")).toBe("https://management.azure.com");
    expect(searchParams.get("client_id")).toBe(env.AZURE_CLIENT_ID);
    expect(asked[0]?.headers.get("metadata")).toBe("true");
  });

  it("is requested again once its token was rejected, and not before", async () => {
    const tokens = azureTokens({ endpoint, env: {}, fetch: send });
    const given = [await tokens.token(), await tokens.token()];
    tokens.forget();
    given.push(await tokens.token(), await tokens.token());
    expect(given).toEqual(["token-1", "token-1", "token-2", "token-2"]);
    expect(asked).toHaveLength(2);
  });
});

it("no token is requested for a loopback endpoint without a token file", async () => {
  const { asked, send } = service(granted);
  const local = parseApiEndpoint("--azure-endpoint", "http://127.0.0.1:1");
  expect(await azureTokens({ endpoint: local, env: {}, fetch: send }).token()).toBeUndefined();
  expect(asked).toEqual([]);
});
