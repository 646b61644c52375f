import type { KubeWatchEvent } from "../../contracts/kube-api.ts";
import type { Instant } from "../../core/time/time.ts";
import type { ResourceColumn, ResourceType } from "../api/resource-registry.ts";
import { recordOf } from "../api/store/json-value.ts";
import type { ModelObject } from "../api/store/model-object.ts";
import {
  ageCell,
  ageOf,
  builtInColumns,
  type ColumnCell,
  readJsonPath,
} from "./built-in-columns.ts";

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

/** One column of `kubectl get`; those of priority 1 are for `-o wide`. */
interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly priority: number;
  readonly cell: ColumnCell;
}

/** The columns of a kind: its own, those of its definition, or name and age. */
function columnsOf(type: ResourceType): readonly TableColumn[] {
  if (type.custom) return customColumns(type.custom.printerColumns);
  const own = builtInColumns[type.storage];
  if (own === undefined) return [nameColumn, ageColumn];
  return own.map(([name, cell, width]) => ({
    name,
    type: "string",
    priority: width === "wide" ? 1 : 0,
    cell,
  }));
}

const nameColumn: TableColumn = {
  name: "Name",
  type: "string",
  priority: 0,
  cell: (object) => object.metadata.name,
};
const ageColumn: TableColumn = { name: "Age", type: "string", priority: 0, cell: ageCell };

function customColumns(given: readonly ResourceColumn[]): readonly TableColumn[] {
  if (given.length === 0) return [nameColumn, ageColumn];
  return [nameColumn, ...given.map(customColumn)];
}

/** Dates are sent as ages, by the server's clock. */
function customColumn(given: ResourceColumn): TableColumn {
  const { name, type, priority = 0, jsonPath } = given;
  const cell = (object: ModelObject, nowAt: Instant): unknown => {
    const value = readJsonPath(object, jsonPath);
    if (value === undefined) return null;
    return type === "date" ? ageOf(value, nowAt) : value;
  };
  return { name, type: type === "date" ? "string" : type, priority, cell };
}
