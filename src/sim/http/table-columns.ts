import type { Instant } from "../../core/time/time.ts";
import type { ModelObject } from "../api/model-object.ts";
import type { ResourceColumn, ResourceType } from "../api/resource-type.ts";
import { ageCell, ageOf, builtInColumns, type ColumnCell } from "./built-in-columns.ts";
import { readJsonPath } from "./json-path.ts";

/** One column of `kubectl get`; those of priority 1 are for `-o wide`. */
export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly priority: number;
  readonly cell: ColumnCell;
}

/** The columns of a kind: its own, those of its definition, or name and age. */
export function columnsOf(type: ResourceType): readonly TableColumn[] {
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
