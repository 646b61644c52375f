import type { LabelRequirement, LabelSelector } from "../../core/cluster/label-selector.ts";
import {
  fieldsOf,
  isFields,
  listOf,
  textListOf,
  textMapOf,
  textOf,
} from "../../core/json/json-field.ts";

/** Reads a label selector; undefined where there is none (which selects nothing). */
export function readSelector(value: unknown): LabelSelector | undefined {
  if (!isFields(value)) return undefined;
  return {
    matchLabels: textMapOf(value.matchLabels),
    matchExpressions: readRequirements(value.matchExpressions),
  };
}

export function readRequirements(value: unknown): readonly LabelRequirement[] {
  return listOf(value).map((item) => {
    const fields = fieldsOf(item);
    return {
      key: textOf(fields.key) ?? "",
      operator: (textOf(fields.operator) ?? "In") as LabelRequirement["operator"],
      values: textListOf(fields.values),
    };
  });
}
