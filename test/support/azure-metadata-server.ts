import { type MetadataReply, MetadataServer } from "./metadata-server.ts";
import type { SeenRequest } from "./scripted-server.ts";

export interface AzureEvent {
  readonly EventId: string;
  readonly EventType: string;
  readonly ResourceType?: string;
  readonly Resources: readonly string[];
  readonly EventStatus: "Scheduled" | "Started";
  readonly NotBefore: string;
}

/** Azure's instance metadata service and Scheduled Events. */
export class AzureMetadataServer extends MetadataServer {
  name = "aks-spot-12345678-vmss_3";
  readonly acknowledged: string[] = [];
  #events: readonly AzureEvent[] = [];
  #incarnation = 1;

  set(events: readonly AzureEvent[]): void {
    this.#events = events;
    this.#incarnation += 1;
  }

  protected override answer(request: SeenRequest): MetadataReply {
    const url = new URL(request.url, "http://metadata");
    if (request.headers.metadata !== "true" || !url.searchParams.has("api-version")) {
      return { status: 400, body: '{"error":"Bad request"}' };
    }
    if (url.pathname === "/metadata/instance/compute/name") return { status: 200, body: this.name };
    if (url.pathname !== "/metadata/scheduledevents") {
      return { status: 404, body: '{"error":"Not found"}' };
    }
    if (request.method === "POST") return this.#acknowledge(request);
    const body = JSON.stringify({ DocumentIncarnation: this.#incarnation, Events: this.#events });
    return { status: 200, body, headers: { "content-type": "application/json" } };
  }

  #acknowledge(request: SeenRequest): MetadataReply {
    const { StartRequests } = JSON.parse(request.body) as { StartRequests: { EventId: string }[] };
    this.acknowledged.push(...StartRequests.map((one) => one.EventId));
    return { status: 200, body: "" };
  }
}
