/**
 * What decisions and sentences need to know of a cloud: data and pure functions, in
 * `<cloud>-facts.ts` of its folder. They are a part of every bundle, also of the page's: what only
 * commands need is in `Cloud` (src/contracts/cloud-descriptor.ts).
 */
export interface CloudFacts {
  /** As in `--cloud`, in the source of a notice and in metrics. */
  readonly name: string;
  /** Its managed Kubernetes, such as `gke`. */
  readonly kubernetes: string;
  /** How the providerID of any of its nodes begins, also of those that are no machine: `aws://`. */
  readonly scheme: string;
  /** How the providerID of a machine begins, as sentences spell it: `aws:///`. */
  readonly idForm: string;
  /** Undefined for a providerID of any other form. */
  readonly parseId: (providerID: string) => CloudMachine | undefined;
  /** The zone that a providerID names, also one that is no machine's. Absent: none does. */
  readonly zoneIn?: (providerID: string) => string | undefined;
  /**
   * Whether another machine may get the same providerID. Usual: a group recreates a machine under
   * its name, so that a new boot is most likely a new machine. Possible: only if somebody creates
   * one of that name. Never: ids are unique.
   */
  readonly idReuse: "Usual" | "Possible" | "Never";

  /** The labels by which it, or tools on it, mark Spot nodes. */
  readonly spotLabels: Readonly<Record<string, SpotLabel>>;
  /** How old machines with a label may become before the cloud ends them. Absent: any age. */
  readonly lifetimeLimits?: readonly LifetimeLimit[];
  /** The labels that name the group of machines of a node. */
  readonly poolLabels: readonly string[];
  /** Taints by which its own tools mark the nodes that they remove. */
  readonly removalMarks: readonly RemovalMark[];
  /** The conditions of a Node that announce its end. Absent: there are none. */
  readonly noticeConditions?: NoticeConditions;

  /** Addresses of its metadata services that are not link-local: actions must not reach them. */
  readonly metadataAddresses: readonly { readonly subnet: string; readonly bits: number }[];
}

/** The machine of a providerID; each cloud adds what identifies it there. */
export interface CloudMachine {
  readonly cloud: string;
  /** The name that the machine has in its cloud. */
  readonly instance: string;
  /** Identifies the machine, however its providerID is spelled. */
  readonly key: string;
}

export interface SpotLabel {
  /** The values that mark a Spot node. */
  readonly spot: readonly string[];
  /** The value on a node that is not Spot. Absent: any other one, or no label. */
  readonly stable?: string;
}

export interface LifetimeLimit {
  readonly label: string;
  readonly value: string;
  readonly hours: number;
}

export interface RemovalMark {
  readonly rival: string;
  /** A taint key, or a prefix if it ends in a slash. */
  readonly taint: string;
  /** Whether the tool removes nodes on its own initiative; the others follow the cloud. */
  readonly removes?: boolean;
}

/** The causes of departures that a condition may have; `LeavesNothing`: the machine only pauses. */
export type ConditionCause =
  | "SpotInterruption"
  | "RebalanceRecommendation"
  | "ScheduledMaintenance"
  | "LifecycleHook"
  | "LeavesNothing";

export interface NoticeConditions {
  readonly types: readonly string[];
  /** By a condition's reason, or else by its type. */
  readonly causes: Readonly<Record<string, ConditionCause>>;
  /** By the event that its message begins with, in lower case; the message takes precedence. */
  readonly eventCauses: Readonly<Record<string, ConditionCause>>;
}

/**
 * One segment of a path. A providerID is written on the node, and becomes a part of the address of
 * a request to the cloud: it must not lead to another path.
 */
export const idSegment = "(?!\\.)[^/?#%\\\\\\s]+";
