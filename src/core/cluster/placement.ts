export interface LabelRequirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  /** Absent with Exists and DoesNotExist. */
  readonly values?: readonly string[] | undefined;
}

/** `{}` selects everything; as in Kubernetes. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?: readonly LabelRequirement[] | undefined;
}

/** Terms are ORed, the requirements of a term are ANDed, as in node affinity. */
export interface NodeSelector {
  readonly nodeSelectorTerms: readonly NodeSelectorTerm[];
}

export interface NodeSelectorTerm {
  readonly matchExpressions: readonly LabelRequirement[];
  readonly matchFields: readonly LabelRequirement[];
}

export type Labels = Readonly<Record<string, string>>;

/**
 * Whether `selector` selects `labels`: all of its requirements must hold, and `{}` selects
 * everything.
 */
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

/** Whether both are whole numbers and the first is less than the second. */
function isOrdered(low: string | undefined, high: string | undefined): boolean {
  const lower = wholeNumber(low);
  const upper = wholeNumber(high);
  return lower !== undefined && upper !== undefined && lower < upper;
}

function wholeNumber(text: string | undefined): bigint | undefined {
  return text !== undefined && /^[+-]?\d+$/.test(text) ? BigInt(text.replace("+", "")) : undefined;
}

/** Amounts by resource name, in base units: cores, bytes, pieces. `{cpu: 0.25, memory: 1048576}` */
export type Amounts = Readonly<Record<string, number>>;

/**
 * What the scheduler requires of a node for a pod: only what can keep a pod off a node. Preferences
 * (`preferred…`, `ScheduleAnyway`) are left out.
 */
export interface PodPlacement {
  /** The pod's requests: containers, init containers and overhead together. */
  readonly requests: Amounts;
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Required node affinity; absent: any node. */
  readonly requiredNodes?: NodeSelector | undefined;
  /** The terms of the volumes' node affinity, as far as they are known; all of them must hold. */
  readonly volumeNodes?: readonly NodeSelector[] | undefined;
  readonly podAffinity: readonly PodTerm[];
  readonly podAntiAffinity: readonly PodTerm[];
  /** Absent: the default scheduler. */
  readonly schedulerName?: string | undefined;
}

/** A required term of pod affinity or anti-affinity, as in the pod's spec. */
export type PodTerm = Readonly<Record<string, unknown>>;

export function sumOf(a: Amounts, b: Amounts): Amounts {
  const sum: Record<string, number> = { ...a };
  for (const [resource, amount] of Object.entries(b)) {
    sum[resource] = (sum[resource] ?? 0) + amount;
  }
  return sum;
}

export function largerOf(a: Amounts, b: Amounts): Amounts {
  const larger: Record<string, number> = { ...a };
  for (const [resource, amount] of Object.entries(b)) {
    larger[resource] = Math.max(larger[resource] ?? 0, amount);
  }
  return larger;
}
