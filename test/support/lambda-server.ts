import { parseJson } from "../../src/core/json/json-field.ts";
import { json, ScriptedServer } from "./scripted-server.ts";

const faults = {
  Unreachable: { status: 500, code: "ServiceException" },
  RateLimited: { status: 429, code: "TooManyRequestsException" },
  RightMissing: { status: 403, code: "AccessDeniedException" },
} as const;

/**
 * Lambda on loopback, as far as invoking needs it: the REST protocol of its model, 2015-03-31. An
 * event is accepted with 202, a dry run answered with 204.
 */
export class LambdaServer {
  readonly functions = new Set<string>();
  /** The invocations, with their payloads. */
  readonly invoked: { readonly name: string; readonly payload: unknown }[] = [];
  fault: keyof typeof faults | undefined;
  readonly #server = new ScriptedServer(({ url, headers, body }, response) => {
    const refuse = ({ status, code }: { readonly status: number; readonly code: string }) => {
      response.setHeader("x-amzn-errortype", code);
      json(response, status, { Message: "As Lambda says it", Type: "User" });
    };
    if (this.fault !== undefined) return refuse(faults[this.fault]);
    const name = /^\/2015-03-31\/functions\/([^/]+)\/invocations/.exec(url)?.[1] ?? "";
    if (!this.functions.has(decodeURIComponent(name))) {
      return refuse({ status: 404, code: "ResourceNotFoundException" });
    }
    // As documented with Invoke: 1 MB for an event.
    if (headers["x-amz-invocation-type"] === "Event" && Buffer.byteLength(body) > 1_048_576) {
      return refuse({ status: 413, code: "RequestTooLargeException" });
    }
    // Dry runs are validated, too.
    if (parseJson(body) === undefined) {
      return refuse({ status: 400, code: "InvalidRequestContentException" });
    }
    const type = headers["x-amz-invocation-type"];
    if (type === "Event") {
      this.invoked.push({ name: decodeURIComponent(name), payload: JSON.parse(body) });
    }
    response.writeHead(type === "Event" ? 202 : 204).end();
  });

  get url(): string {
    return this.#server.url;
  }

  async start(): Promise<this> {
    await this.#server.start();
    return this;
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }
}
