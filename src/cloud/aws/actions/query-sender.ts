import { SignatureV4 } from "@smithy/signature-v4";

type SignerOptions = ConstructorParameters<typeof SignatureV4>[0];

/** What a request handler of the AWS SDK returns; the body is a stream. */
interface HandledRequest {
  readonly response: { readonly statusCode: number; readonly body?: unknown };
}

/** Parts of an AWS client's configuration, and the service that it calls. */
export interface QuerySenderOptions
  extends Pick<SignerOptions, "credentials" | "region" | "sha256" | "service"> {
  /** The version of the API, as the client's own requests name it. */
  readonly version: string;
  readonly requestHandler: {
    handle(request: never, how: { readonly abortSignal: AbortSignal }): Promise<HandledRequest>;
  };
}

/** Where requests of the client go. */
export interface QueryEndpoint {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly path: string;
}

/**
 * Sends requests of AWS's Query protocol with the credentials, the signature and the sockets of an
 * AWS client, but without the middleware that its `send` assembles for each request. In a burst of
 * notices a thousand deregistrations compete with the evictions for the CPU, and each costs half as
 * much this way (docs/adr/0002-dependencies.md).
 */
export class QuerySender {
  readonly #options: QuerySenderOptions;
  readonly #signer: SignatureV4;
  #endpoint: QueryEndpoint | undefined;

  constructor(options: QuerySenderOptions) {
    const { service, credentials, region, sha256 } = options;
    this.#options = options;
    this.#signer = new SignatureV4({ service, credentials, region, sha256 });
  }

  /** Uses the endpoint of a request that the client sends, since the client has its rules. */
  follow({ protocol, hostname, port, path }: QueryEndpoint): void {
    this.#endpoint = { protocol, hostname, path, ...(port === undefined ? {} : { port }) };
  }

  /**
   * Returns whether AWS accepted the request. If not, or if no endpoint is known yet, send it with
   * the client, which reads the error and retries. Rejects only when the signal aborts.
   */
  async isAccepted(
    action: string,
    fields: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (this.#endpoint === undefined) return false;
    const { version } = this.#options;
    const body = new URLSearchParams({ Action: action, Version: version, ...fields }).toString();
    try {
      const { status, text } = await this.#send(this.#endpoint, body, signal);
      // A proxy's page is not AWS's acceptance, whatever its status.
      return status === 200 && text.includes(`<${action}Response`);
    } catch {
      signal.throwIfAborted();
      return false;
    }
  }

  async #send(
    endpoint: QueryEndpoint,
    body: string,
    abortSignal: AbortSignal,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const { hostname, port } = endpoint;
    const signed = await this.#signer.sign({
      ...endpoint,
      method: "POST",
      query: {},
      headers: {
        host: port === undefined ? hostname : `${hostname}:${port}`,
        "content-type": "application/x-www-form-urlencoded",
        "content-length": String(Buffer.byteLength(body)),
      },
      body,
    });
    const { requestHandler } = this.#options;
    const { response } = await requestHandler.handle(signed as never, { abortSignal });
    // Read to its end, or its socket is not used again.
    const parts: Uint8Array[] = [];
    for await (const part of response.body as AsyncIterable<Uint8Array>) parts.push(part);
    return { status: response.statusCode, text: Buffer.concat(parts).toString("utf8") };
  }
}
