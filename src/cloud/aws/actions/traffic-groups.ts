/**
 * A target group (ALB, NLB) or a classic load balancer.
 */
export interface TrafficGroup {
  readonly kind: "TargetGroup" | "Classic";
  /** The ARN of a target group, or the name of a classic load balancer. */
  readonly id: string;
  /** Whether targets are addresses instead of instances. */
  readonly byAddress: boolean;
  /** The VPC, outside of which addresses are ambiguous. */
  readonly vpc?: string | undefined;
  /**
   * Whether it is tagged `elbv2.k8s.aws/cluster`, so that aws-load-balancer-controller manages its
   * targets by the Nodes' labels. Undefined if the tags could not be read.
   */
  readonly isOwned: boolean | undefined;
}

export interface Target {
  /** An instance id or an address. */
  readonly id: string;
  /**
   * The registered port, one of possibly several. Absent for classic load balancers.
   */
  readonly port?: number | undefined;
}

/** A group with its registered targets, without draining ones. */
export interface Registered {
  readonly group: TrafficGroup;
  readonly targets: readonly Target[];
}

/** Decides what a reading does when it is throttled. */
export type OnBusy = (attempt: number) => Promise<"Again" | "Enough">;

/** Receives the progress of a reading. */
export interface ReadingListener {
  /**
   * Reports what could not be read while the rest continues: the targets of a group, or without a
   * group, the owners of those whose `isOwned` is undefined.
   */
  readonly onError: (group: TrafficGroup | undefined, error: unknown) => void;
  /** The number of groups to read, once known. */
  readonly onListed?: (count: number) => void;
  /** Called for each group as soon as it is read. */
  readonly onRead?: (one: Registered) => void;
  /** Absent: throttling is an error. */
  readonly onBusy?: OnBusy | undefined;
}

/** `Gone`: the group or the instance no longer exists. */
export type RegisterEnd = "Registered" | "Gone";

/**
 * Elastic Load Balancing for one kind of group. Implemented by `target-group-client.ts` and
 * `classic-load-balancer-client.ts`; contract suite: `test/contract/traffic-groups.contract.ts`.
 * All methods throw `CLOUD_*` errors, or the signal's reason when it aborts. A deleted group has no
 * targets, and removing a missing target succeeds.
 */
export interface TrafficGroups {
  readonly kind: TrafficGroup["kind"];
  /** Reads every group of the region that contains instances or addresses. */
  read(listener: ReadingListener, signal: AbortSignal): Promise<readonly Registered[]>;
  deregister(id: string, targets: readonly Target[], signal: AbortSignal): Promise<void>;
  register(id: string, targets: readonly Target[], signal: AbortSignal): Promise<RegisterEnd>;
  /** Returns the targets that still have connections or are still registered. */
  remaining(
    id: string,
    targets: readonly Target[],
    signal: AbortSignal,
  ): Promise<readonly Target[]>;
}

export function keyOfTarget({ id, port }: Target): string {
  return `${id}:${port ?? ""}`;
}
