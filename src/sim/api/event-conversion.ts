import { apiVersionOf, type ResourceType } from "./resource-registry.ts";
import { type JsonRecord, recordOf } from "./store/json-value.ts";
import type { ModelObject } from "./store/model-object.ts";

/**
 * Events are kept as core v1 and read as `events.k8s.io/v1` under other names of the same fields,
 * as the server converts them. Source: kubernetes `pkg/apis/events/v1/conversion.go`.
 */
const newNames: Readonly<Record<string, string>> = {
  involvedObject: "regarding",
  message: "note",
  reportingComponent: "reportingController",
  source: "deprecatedSource",
  firstTimestamp: "deprecatedFirstTimestamp",
  lastTimestamp: "deprecatedLastTimestamp",
  count: "deprecatedCount",
};

const oldNames: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(newNames).map(([before, after]) => [after, before]),
);

/** A stored object as the clients of `type` read it. */
export function present(object: ModelObject, type: ResourceType): ModelObject {
  const apiVersion = apiVersionOf(type);
  if (object.apiVersion === apiVersion) return object;
  if (type.group !== "events.k8s.io") return Object.freeze({ ...object, apiVersion });
  return Object.freeze({ ...renamed(object, newNames), apiVersion }) as ModelObject;
}

/** What a client of `type` wrote, as it is stored. */
export function ingest(body: JsonRecord, type: ResourceType): JsonRecord {
  if (type.group !== "events.k8s.io") return body;
  return Object.freeze({ ...renamed(body, oldNames), apiVersion: "v1" });
}

function renamed(object: JsonRecord, names: Readonly<Record<string, string>>): JsonRecord {
  const entries = Object.entries(recordOf(object));
  return Object.fromEntries(entries.map(([field, value]) => [names[field] ?? field, value]));
}
