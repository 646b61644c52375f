import type { ServerResponse } from "node:http";
import type { Instant } from "../../src/core/time/time.ts";
import { ScriptedServer, type SeenRequest } from "./scripted-server.ts";

/** The ways in which a metadata service can misbehave. */
export const illnesses = [
  "Unavailable",
  "NotFound",
  "Html",
  "Empty",
  "Binary",
  "Oversized",
  "Reset",
  "Silent",
  "SlowBody",
  "Redirect",
] as const;

export type Illness = (typeof illnesses)[number];

export interface MetadataReply {
  readonly status: number;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A cloud's metadata service on loopback: responds by the cloud's rules, or misbehaves. */
export abstract class MetadataServer {
  readonly #server: ScriptedServer;
  readonly #now: () => Instant;
  #illness: Illness | undefined;

  /** `now` is the cloud's time, as sent in the Date header. */
  constructor(now: () => Instant) {
    this.#now = now;
    this.#server = new ScriptedServer((request, response) => this.#serve(request, response));
  }

  get url(): string {
    return this.#server.url;
  }

  get seen(): readonly SeenRequest[] {
    return this.#server.seen;
  }

  async start(): Promise<this> {
    await this.#server.start();
    return this;
  }

  async stop(): Promise<void> {
    await this.#server.stop();
  }

  /** Takes effect with the next request. */
  fallIll(illness: Illness): void {
    this.#illness = illness;
    this.wake();
  }

  heal(): void {
    this.#illness = undefined;
  }

  /** Completes requests that are held open. */
  protected wake(): void {}

  /** Responds by the cloud's rules; `gone` aborts when the caller no longer waits. */
  protected abstract answer(
    request: SeenRequest,
    gone: AbortSignal,
  ): MetadataReply | Promise<MetadataReply>;

  async #serve(request: SeenRequest, response: ServerResponse): Promise<void> {
    const leaving = new AbortController();
    response.once("close", () => leaving.abort());
    const reply = this.#illness ?? (await this.answer(request, leaving.signal));
    // It may have started to misbehave while the request was hanging.
    const ill = typeof reply === "string" ? reply : this.#illness;
    if (ill !== undefined) beIll(ill, response);
    else if (typeof reply !== "string") {
      response.writeHead(reply.status, { date: httpDate(this.#now()), ...reply.headers });
      response.end(reply.body);
    }
  }
}

/** RFC 9110, as formatted by the platform: independent of the parser under test. */
export function httpDate(at: Instant): string {
  return new Date(at).toUTCString();
}

const html = "<html><head><title>Sign in</title></head><body>Welcome</body></html>";

function beIll(illness: Illness, response: ServerResponse): void {
  switch (illness) {
    case "Unavailable":
      response.writeHead(503).end("busy");
      return;
    case "NotFound":
      response.writeHead(404).end("404 page not found");
      return;
    case "Html":
      response.writeHead(200, { "content-type": "text/html" }).end(html);
      return;
    case "Empty":
      response.writeHead(200).end();
      return;
    case "Binary":
      response.writeHead(200).end(Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x07]));
      return;
    case "Oversized":
      response.writeHead(200).end("[".repeat(200_000));
      return;
    case "Reset":
      response.destroy();
      return;
    case "Silent":
      return;
    case "SlowBody":
      response.writeHead(200).write("{");
      return;
    case "Redirect":
      response.writeHead(302, { location: "http://192.0.2.1/" }).end();
      return;
  }
}
