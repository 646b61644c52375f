/**
 * What takes traffic to machines: a target group (ALB, NLB), or a classic load balancer by itself.
 */
export interface TrafficGroup {
  readonly kind: "TargetGroup" | "Classic";
  /** The ARN of a target group, the name of a classic load balancer. */
  readonly id: string;
  /** Targets are addresses, and not instances. */
  readonly byAddress: boolean;
  /** Addresses mean something inside their own VPC alone. */
  readonly vpc?: string | undefined;
  /**
   * Tagged `elbv2.k8s.aws/cluster`: aws-load-balancer-controller keeps its targets by the Nodes'
   * labels. Undefined where the tags could not be read.
   */
  readonly isOwned: boolean | undefined;
}

export interface Target {
  /** An instance's id or an address. */
  readonly id: string;
  /**
   * The registered port; a target may be registered on several. Absent of a classic load balancer.
   */
  readonly port?: number | undefined;
}

/** A group with all that is registered in it and not on its way out. */
export interface Registered {
  readonly group: TrafficGroup;
  readonly targets: readonly Target[];
}

/** What a reading is to do where the API says that it is asked too often. */
export type OnBusy = (attempt: number) => Promise<"Again" | "Enough">;

/** Who hears how a reading goes. */
export interface ReadingListener {
  /**
   * What could not be read while the rest goes on: the targets of a group, or without a group the
   * owner of those whose `isOwned` is undefined.
   */
  readonly onError: (group: TrafficGroup | undefined, error: unknown) => void;
  /** How many groups there are to read, as far as that is known. */
  readonly onListed?: (count: number) => void;
  /** Each group as soon as it is known. */
  readonly onRead?: (one: Registered) => void;
  /** Absent: to be asked too often is a trouble. */
  readonly onBusy?: OnBusy | undefined;
}

/** `Gone`: there is no such group any more, or no such instance. */
export type RegisterEnd = "Registered" | "Gone";

/**
 * Elastic Load Balancing, of one kind of group. Made by `target-group-client.ts` and
 * `classic-load-balancer-client.ts`; contract suite: `test/contract/traffic-groups.contract.ts`.
 * All methods throw `LastcallError` `CLOUD_*`, or the signal's reason when it aborts. A group that
 * is gone has no targets, and what is gone already is as it should be.
 */
export interface TrafficGroups {
  readonly kind: TrafficGroup["kind"];
  /** Every group of the region that holds instances or addresses. */
  read(listener: ReadingListener, signal: AbortSignal): Promise<readonly Registered[]>;
  deregister(id: string, targets: readonly Target[], signal: AbortSignal): Promise<void>;
  register(id: string, targets: readonly Target[], signal: AbortSignal): Promise<RegisterEnd>;
  /** Those of these that still have connections, or have not been deregistered. */
  remaining(
    id: string,
    targets: readonly Target[],
    signal: AbortSignal,
  ): Promise<readonly Target[]>;
}

export function keyOfTarget({ id, port }: Target): string {
  return `${id}:${port ?? ""}`;
}
