/** A request to a token service. */
export interface TokenRequest {
  readonly url: string;
  readonly body: URLSearchParams;
  readonly headers: Headers;
}

interface Refusal {
  readonly status: number;
  readonly error: string;
  readonly code: number;
  readonly text: string;
}

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/**
 * Microsoft Entra's token endpoint, as far as a pod's token is exchanged: what it refuses, in the
 * words of its documentation (test/support/README.md).
 */
export function entraResponse(request: TokenRequest, token: string): Response {
  const refusal = refusalOf(request);
  if (refusal === undefined) {
    return Response.json({ token_type: "Bearer", expires_in: 3599, access_token: token });
  }
  const { status, error, code, text } = refusal;
  const description = `AADSTS${code}: ${text}\r\nTrace ID: 0\r\nCorrelation ID: 0`;
  return Response.json({ error, error_description: description, error_codes: [code] }, { status });
}

function refusalOf({ url, body, headers }: TokenRequest): Refusal | undefined {
  const [, tenant, path] = new URL(url).pathname.split(/^\/([^/]+)/);
  if (tenant === undefined || path !== "/oauth2/v2.0/token") {
    return { status: 404, error: "invalid_request", code: 900_561, text: "No such endpoint." };
  }
  const isForm = headers.get("content-type")?.startsWith("application/x-www-form-urlencoded");
  const missing = ["client_id", "scope", "grant_type"].find((name) => !body.get(name));
  if (isForm !== true || missing !== undefined) {
    const text = `The request body must contain the following parameter: '${missing ?? "grant_type"}'.`;
    return { status: 400, error: "invalid_request", code: 900_144, text };
  }
  if (!body.get("client_assertion") || body.get("client_assertion_type") !== assertionType) {
    const text =
      "The request body must contain the following parameter: 'client_assertion' or 'client_secret'.";
    return { status: 401, error: "invalid_client", code: 7_000_218, text };
  }
  const scopes = body.get("scope")?.split(" ") ?? [];
  if (!scopes.some((scope) => scope.endsWith("/.default"))) {
    const text = "The provided value for the input parameter 'scope' isn't valid.";
    return { status: 400, error: "invalid_scope", code: 70_011, text };
  }
  return undefined;
}
