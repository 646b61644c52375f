import type { KubeWatchEvent } from "../../contracts/kube-api.ts";
import type { Instant } from "../../core/time/time.ts";
import { recordOf } from "../api/frozen-copy.ts";
import type { ModelObject } from "../api/model-object.ts";
import type { ResourceType } from "../api/resource-type.ts";
import { columnsOf } from "./table-columns.ts";

/** Whether a client asks for a Table; kubectl does where it prints columns. */
export function wantsTable(accept: string | undefined): boolean {
  return /as=Table;(.*;)?g=meta\.k8s\.io/.test(accept ?? "");
}

/** A list or a single object as the Table that the server would print. */
export function tableOf(
  body: unknown,
  options: { readonly type: ResourceType; readonly nowAt: Instant },
): object {
  const record = recordOf(body);
  const items = Array.isArray(record.items) ? record.items : [body];
  const metadata = Array.isArray(record.items)
    ? record.metadata
    : { resourceVersion: recordOf(record.metadata).resourceVersion };
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: definitionsOf(options.type),
    rows: items.map((item) => rowOf(item as ModelObject, options)),
  };
}

/** A watch event about a Table of one row; errors are passed on as they are. */
export function tableEvent(
  event: KubeWatchEvent,
  options: { readonly type: ResourceType; readonly nowAt: Instant },
): { readonly type: string; readonly object: object } {
  if (event.type === "ERROR" || event.type === "BOOKMARK") return event;
  return { type: event.type, object: tableOf(event.object, options) };
}

function definitionsOf(type: ResourceType): readonly object[] {
  return columnsOf(type).map((column) => ({
    name: column.name,

    type: column.type,
    format: column.name === "Name" ? "name" : "",
    description: "",
    priority: column.priority,
  }));
}

function rowOf(
  object: ModelObject,
  options: { readonly type: ResourceType; readonly nowAt: Instant },
): object {
  const { metadata } = object;
  return {
    cells: columnsOf(options.type).map((column) => column.cell(object, options.nowAt)),
    object: { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata },
  };
}
