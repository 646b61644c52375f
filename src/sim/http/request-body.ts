import type { IncomingMessage } from "node:http";
import { ApiRefusal, badRequest, unsupportedMediaType } from "../api/api-refusal.ts";

/** The real server takes no more either. */
const bodyMaxBytes = 3 * 1024 * 1024;

/** Some commands of kubectl, such as `create namespace`, send it; files are sent as JSON. */
const protobuf = "application/vnd.kubernetes.protobuf";

/** Reads a request's JSON body; undefined where there is none. Throws `ApiRefusal` (400, 413, 415). */
export async function readBody(request: IncomingMessage): Promise<unknown> {
  if (request.headers["content-type"]?.startsWith(protobuf)) {
    throw unsupportedMediaType(["application/json"]);
  }
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > bodyMaxBytes) {
      const message = "the request body is larger than 3 MiB";
      throw new ApiRefusal({ code: 413, reason: "RequestEntityTooLarge", message });
    }
    parts.push(part);
  }
  if (size === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"));
  } catch {
    throw badRequest("the object provided is unrecognized: it is no JSON, which the model wants");
  }
}
