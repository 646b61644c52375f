import type { IncomingMessage } from "node:http";
import { ApiRefusal, badRequest } from "../api/api-refusal.ts";
import { readProtobufObject } from "./protobuf-object.ts";

/** The real server takes no more either. */
const bodyMaxBytes = 3 * 1024 * 1024;

/** Some commands of kubectl, such as `create namespace`, send it; files are sent as JSON. */
const protobuf = "application/vnd.kubernetes.protobuf";

/**
 * Reads a request's body, JSON or such protobuf as kubectl sends; undefined where there is none. Throws
 * `ApiRefusal` (400, 413, 415).
 */
export async function readBody(request: IncomingMessage): Promise<unknown> {
  const bytes = await readBytes(request);
  if (request.headers["content-type"]?.startsWith(protobuf)) return fromProtobuf(bytes);
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    throw badRequest("the object provided is unrecognized: it is no JSON, which the model wants");
  }
}

/** A kubectl does not try again in JSON by itself, so that it is told what to do. */
function fromProtobuf(bytes: Uint8Array): object {
  const object = readProtobufObject(bytes);
  if (object !== undefined) return object;
  const message =
    "the model cluster reads this object as JSON only, and kubectl sends JSON where it is given a file: add --dry-run=client -o yaml, and pipe that into kubectl apply -f -";
  throw new ApiRefusal({ code: 415, reason: "UnsupportedMediaType", message, details: {} });
}

async function readBytes(request: IncomingMessage): Promise<Buffer> {
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
  return Buffer.concat(parts);
}
