import type { Instant } from "../../src/core/time/time.ts";
import { ScriptedServer } from "./scripted-server.ts";

export interface QueryAnswer {
  readonly status: number;
  readonly xml: string;
}

export interface QueryRefusal {
  readonly status: number;
  readonly code: string;
  readonly text: string;
}

/**
 * An AWS service on loopback that speaks the Query protocol: requests are forms, responses are XML.
 */
export abstract class AwsQueryServer {
  /** The region that each request is signed for. */
  readonly regions: string[] = [];
  /** The service's clock, if it is not that of this machine. */
  protected readonly now: (() => Instant) | undefined;
  readonly #server = new ScriptedServer(async ({ headers, body }, response) => {
    const [, region] = /Credential=[^/]+\/\d+\/([^/]+)\//.exec(headers.authorization ?? "") ?? [];
    if (region !== undefined) this.regions.push(region);
    const { status, xml } = await this.answer(new URLSearchParams(body));
    const { now } = this;
    const date = now === undefined ? {} : { date: new Date(now()).toUTCString() };
    response.writeHead(status, { "content-type": "text/xml", ...date });
    response.end(xml);
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

  protected abstract answer(asked: URLSearchParams): QueryAnswer | Promise<QueryAnswer>;
}

export function element(name: string, content: string | number | undefined): string {
  if (content === undefined) return "";
  return `<${name}>${content}</${name}>`;
}

/** An element with escaped text. */
export function textElement(name: string, text: string | undefined): string {
  return element(name, text?.replaceAll("&", "&amp;").replaceAll("<", "&lt;"));
}

/**
 * `Targets.member.1.Id` is the part `Id` of member 1 of `Targets.member`; members stay in order.
 */
export function membersOf(
  asked: URLSearchParams,
  list: string,
): readonly Readonly<Record<string, string>>[] {
  const members = new Map<number, Record<string, string>>();
  for (const [key, value] of asked) {
    if (!key.startsWith(`${list}.`)) continue;
    const [place = "", ...rest] = key.slice(list.length + 1).split(".");
    if (!/^\d+$/.test(place)) continue;
    const member = members.get(Number(place)) ?? {};
    member[rest.join(".")] = value;
    members.set(Number(place), member);
  }
  return [...members].toSorted(([a], [b]) => a - b).map(([, member]) => member);
}

/** `ResourceArns.member.1=…` and so on. */
export function listOf(asked: URLSearchParams, list: string): readonly string[] {
  return membersOf(asked, list).map((member) => member[""] ?? "");
}

/** The error response of services other than EC2. */
export function errorResponse(
  { status, code, text }: QueryRefusal,
  namespace: string,
): QueryAnswer {
  const type = status < 500 ? "Sender" : "Receiver";
  const error = element("Type", type) + element("Code", code) + textElement("Message", text);
  const xml = `<ErrorResponse xmlns="${namespace}">${element("Error", error)}<RequestId>7c6e177f</RequestId></ErrorResponse>`;
  return { status, xml };
}

/** The error response of EC2. */
export function ec2ErrorResponse({ status, code, text }: QueryRefusal): QueryAnswer {
  const error = element("Code", code) + textElement("Message", text);
  const xml = `<Response>${element("Errors", element("Error", error))}<RequestID>7c6e177f</RequestID></Response>`;
  return { status, xml };
}
