export interface LabelRequirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  /** Exists and DoesNotExist have none. */
  readonly values?: readonly string[] | undefined;
}

/** `{}` selects everything; as in Kubernetes. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?: readonly LabelRequirement[] | undefined;
}

/** Terms are OR-ed, the requirements inside one are AND-ed: as in node affinity. */
export interface NodeSelector {
  readonly nodeSelectorTerms: readonly NodeSelectorTerm[];
}

export interface NodeSelectorTerm {
  readonly matchExpressions: readonly LabelRequirement[];
  readonly matchFields: readonly LabelRequirement[];
}

export type Labels = Readonly<Record<string, string>>;

/** Whether `selector` selects `labels`; all of it must hold, and `{}` selects everything. */
export function matchesLabelSelector(selector: LabelSelector, labels: Labels): boolean {
  const exact = Object.entries(selector.matchLabels ?? {});
  return (
    exact.every(([key, value]) => labels[key] === value) &&
    (selector.matchExpressions ?? []).every((one) => meetsRequirement(labels, one))
  );
}

/**
 * Whether labels meet one requirement of a label selector or of node affinity. A missing label
 * satisfies NotIn and DoesNotExist, and Gt and Lt compare whole numbers and nothing else. Source:
 * apimachinery `pkg/labels/selector.go`, Requirement.Matches.
 */
export function meetsRequirement(labels: Labels, requirement: LabelRequirement): boolean {
  const { key, operator, values = [] } = requirement;
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    case "Gt":
      return isOrdered(values[0], value);
    case "Lt":
      return isOrdered(value, values[0]);
  }
}

/** Whether both are whole numbers and the first is the smaller: no other text is ever ordered. */
function isOrdered(low: string | undefined, high: string | undefined): boolean {
  const lower = wholeNumber(low);
  const upper = wholeNumber(high);
  return lower !== undefined && upper !== undefined && lower < upper;
}

function wholeNumber(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?\d+$/.test(text) ? BigInt(text.replace("+", "")) : undefined;
}
