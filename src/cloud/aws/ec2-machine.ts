import { trimmedTextOf } from "../../core/json/json-field.ts";
import { formatInstant, type Instant } from "../../core/time/time.ts";

/** An id as EC2 gives it to an instance; undefined for anything else. */
export function instanceIdOf(value: unknown): string | undefined {
  const id = trimmedTextOf(value) ?? "";
  return /^i-[0-9a-f]{8,32}$/.test(id) ? id : undefined;
}

/** Where an instance is to be asked about. */
export interface InstanceRef {
  readonly instanceId: string;
  /** Absent where the providerID names no zone: the environment says it. */
  readonly region: string | undefined;
}

/** Of `aws:///eu-west-1a/i-0abc`; undefined for anything else. */
export function findInstanceRef(providerID: string): InstanceRef | undefined {
  const [, zone = "", id] = /^aws:\/\/\/([^/]*)\/([^/]+)$/.exec(providerID) ?? [];
  const instanceId = instanceIdOf(id);
  return instanceId === undefined ? undefined : { instanceId, region: regionOf(zone) };
}

/**
 * The region of a zone: `eu-west-1` of `eu-west-1a`, of the local zone `eu-west-1-lax-1a` and of
 * the Wavelength zone `eu-west-1-wl1-bos-wlz-1`. Source: EC2 User Guide, Regions and Zones.
 */
function regionOf(zone: string): string | undefined {
  return /^[a-z]{2,}(-[a-z]+)+-\d+/.exec(zone)?.[0];
}

/**
 * EC2 takes 200 values of filters in one request ("FilterLimitExceeded"); ten are left for the tag
 * and the type.
 */
export const mostAskedFor = 190;

/**
 * What is asked of EC2 itself. Made by `ec2-client.ts`. All methods read every page, and throw
 * `LastcallError` `CLOUD_*`, or the signal's reason when it aborts.
 */
export interface Ec2 {
  /**
   * What is scheduled for instances of the region, over and called off too; of the others nothing.
   */
  scheduledEvents(signal: AbortSignal): Promise<readonly ScheduledEvent[]>;
  /** The ids of the region's instances that carry the tag; `only`: of these, 190 at the most. */
  tagged(tag: Tag, signal: AbortSignal, only?: readonly string[]): Promise<ReadonlySet<string>>;
}

/** As EC2 says it; any part may be missing. */
export interface ScheduledEvent {
  readonly instance?: string | undefined;
  readonly id?: string | undefined;
  /** Such as `system-reboot`. */
  readonly code?: string | undefined;
  readonly description?: string | undefined;
  readonly notBeforeAt?: Instant | undefined;
}

export interface Tag {
  readonly key: string;
  /** Absent: any. */
  readonly value?: string | undefined;
}

/** An instance, as EC2 tells of it. */
export interface Ec2Instance {
  readonly instanceId: string;
  /** EC2's own word, such as `shutting-down`. */
  readonly state: string;
  /** When it was last started; a stop and a start make another machine of it. */
  readonly launchedAt: Instant | undefined;
  /** Its private DNS name, which is the name of its Node unless the AMI has another way. */
  readonly dnsName?: string | undefined;
  /** Karpenter's own tag; whoever bears it is Karpenter's. */
  readonly nodePool: string | undefined;
  /** The tag that all instances of its cluster have; absent where none of its tags says which. */
  readonly clusterTag?: Tag | undefined;
}

/** The Auto Scaling group that an instance is in. */
export interface Membership {
  readonly group: string;
  /** Auto Scaling's own word, such as `InService` or `Terminating:Wait`. */
  readonly state: string;
}

export interface GroupSize {
  readonly desired: number;
  readonly min: number;
  /** Processes that somebody has suspended, such as `Launch`. */
  readonly suspended: readonly string[];
}

/**
 * What releases ask of EC2. Made by `ec2-client.ts`. All methods throw `LastcallError` `CLOUD_*`,
 * or the signal's reason when it aborts.
 */
export interface Ec2Instances {
  /**
   * Those of these that EC2 has, also such as ended in the last hour; in a request for each 190.
   */
  instances(ids: readonly string[], signal: AbortSignal): Promise<readonly Ec2Instance[]>;
  terminate(instanceId: string, signal: AbortSignal): Promise<void>;
  /** Throws what `terminate` would throw, as far as permissions go, and changes nothing. */
  tryTerminate(instanceId: string, signal: AbortSignal): Promise<void>;
}

/**
 * What releases ask of EC2 Auto Scaling. Made by `auto-scaling.ts`; throws as `Ec2Instances` does.
 */
export interface ScalingGroups {
  /** Undefined where the instance is in no group. */
  membership(instanceId: string, signal: AbortSignal): Promise<Membership | undefined>;
  size(group: string, signal: AbortSignal): Promise<GroupSize | undefined>;
  terminate(
    instanceId: string,
    how: { readonly group: string; readonly desired: "Kept" | "Decremented" },
    signal: AbortSignal,
  ): Promise<void>;
}

/** An instance and its group, as just seen. */
export interface Ec2Machine {
  readonly instance: Ec2Instance;
  /** Asked for only of one that runs. */
  readonly membership: Membership | undefined;
}

type Stage = "Running" | "Leaving" | "Gone";

/** An instance that a stop has ended runs no pods any more, and comes back as another machine. */
export function stageOf({ state }: Ec2Instance): Stage {
  if (state === "terminated" || state === "stopped") return "Gone";
  return state === "shutting-down" || state === "stopping" ? "Leaving" : "Running";
}

/**
 * As it is kept in the ledger: `i-0abc@2026-11-24T15:00:00Z`, since an instance keeps its id when
 * it is started again.
 */
export function machineIdOf({ instanceId, launchedAt }: Ec2Instance): string {
  return launchedAt === undefined ? instanceId : `${instanceId}@${formatInstant(launchedAt)}`;
}

/** How to ask about the instances of a region, over one client each. */
export type InRegion<Client> = (region: InstanceRef["region"]) => Client;
