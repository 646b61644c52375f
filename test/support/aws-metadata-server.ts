import defaults from "../data/aws/imds-defaults.json" with { type: "json" };
import { type MetadataReply, MetadataServer } from "./metadata-server.ts";
import type { SeenRequest } from "./scripted-server.ts";

/** EC2's metadata service, only version 2. */
export class AwsMetadataServer extends MetadataServer {
  /** Values by their path below `/latest/meta-data/`; any other path is a 404. */
  readonly values = new Map<string, string>([
    ["instance-id", defaults.values["instance-id"]],
    ["events/maintenance/scheduled", "[]"],
    ["autoscaling/target-lifecycle-state", "InService"],
  ]);
  ttlSeconds = 21_600;
  #tokens = 0;
  readonly #valid = new Set<string>();

  get tokensIssued(): number {
    return this.#tokens;
  }

  /** From now on, every token issued so far is refused. */
  forgetTokens(): void {
    this.#valid.clear();
  }

  protected override answer(request: SeenRequest): MetadataReply {
    if (request.url === "/latest/api/token") return this.#token(request);
    const token = request.headers["x-aws-ec2-metadata-token"];
    if (typeof token !== "string" || !this.#valid.has(token)) {
      return { status: 401, body: defaults.bodies["401"] };
    }
    const value = this.values.get(request.url.replace("/latest/meta-data/", ""));
    if (value === undefined) return { status: 404, body: defaults.bodies["404"] };
    return { status: 200, body: value };
  }

  #token(request: SeenRequest): MetadataReply {
    const asked = Number(request.headers["x-aws-ec2-metadata-token-ttl-seconds"]);
    if (request.method !== "PUT" || !(asked >= 1 && asked <= 21_600)) {
      return { status: 400, body: defaults.bodies["400"] };
    }
    this.#tokens += 1;
    const token = `token-${this.#tokens}==`;
    this.#valid.add(token);
    const headers = { "x-aws-ec2-metadata-token-ttl-seconds": String(this.ttlSeconds) };
    return { status: 200, body: token, headers };
  }
}
