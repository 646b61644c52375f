export interface LabelRequirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  readonly values: readonly string[];
}

/** `{}` selects everything; as in Kubernetes. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?: readonly LabelRequirement[] | undefined;
}

/** Whether `selector` selects `labels`; all of it must hold, and `{}` selects everything. */
export function matchesLabelSelector(
  selector: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  const exact = Object.entries(selector.matchLabels ?? {});
  return (
    exact.every(([key, value]) => labels[key] === value) &&
    (selector.matchExpressions ?? []).every((requirement) =>
      holds(requirement, labels[requirement.key]),
    )
  );
}

/** A missing label satisfies NotIn and DoesNotExist, as in apimachinery's labels.Requirement. */
function holds(requirement: LabelRequirement, value: string | undefined): boolean {
  switch (requirement.operator) {
    case "In":
      return value !== undefined && requirement.values.includes(value);
    case "NotIn":
      return value === undefined || !requirement.values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return value !== undefined && Number(value) > Number(requirement.values[0]);
    case "Lt":
      return value !== undefined && Number(value) < Number(requirement.values[0]);
  }
}
