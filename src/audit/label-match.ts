import type { LabelRequirement, LabelSelector } from "../core/label-selector.ts";
import { fieldsOf, isFields, listOf, textListOf, textMapOf, textOf } from "./json-field.ts";

type Labels = Readonly<Record<string, string>>;

/** Whether labels meet a selector; `{}` meets everything, as in Kubernetes. */
export function matchesSelector(selector: LabelSelector, labels: Labels): boolean {
  const wanted = Object.entries(selector.matchLabels ?? {});
  if (!wanted.every(([key, value]) => labels[key] === value)) return false;
  return (selector.matchExpressions ?? []).every((one) => meetsRequirement(one, labels));
}

/**
 * Whether labels meet one requirement of a label selector or of node affinity. NotIn and
 * DoesNotExist hold where the key is missing. Source: apimachinery labels.Requirement.Matches.
 */
export function meetsRequirement(requirement: LabelRequirement, labels: Labels): boolean {
  const found = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined;
  switch (requirement.operator) {
    case "In":
      return found !== undefined && requirement.values.includes(found);
    case "NotIn":
      return found === undefined || !requirement.values.includes(found);
    case "Exists":
      return found !== undefined;
    case "DoesNotExist":
      return found === undefined;
    case "Gt":
      return found !== undefined && Number(found) > Number(requirement.values[0]);
    case "Lt":
      return found !== undefined && Number(found) < Number(requirement.values[0]);
  }
}

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
