import type { ActionProblem, ActionTask } from "../../contracts/action-runner.ts";
import type { MachineNames } from "../../core/cluster/machine-name.ts";
import { trimmedTextOf } from "../../core/json/json-field.ts";
import { formatInstant, type Instant } from "../../core/time/time.ts";
import { LastcallError } from "../../errors.ts";
import { asFault } from "./aws-client.ts";

/** Returns a valid EC2 instance id; undefined for anything else. */
export function instanceIdOf(value: unknown): string | undefined {
  const id = trimmedTextOf(value) ?? "";
  return /^i-[0-9a-f]{8,32}$/.test(id) ? id : undefined;
}

/** An instance and its region. */
export interface InstanceRef {
  readonly instanceId: string;
  /** Undefined if no zone or event names it: the region then comes from the environment. */
  readonly region: string | undefined;
}

/** Parses `aws:///eu-west-1a/i-0abc`; undefined for anything else. */
export function findInstanceRef(providerID: string): InstanceRef | undefined {
  const [, zone = "", id] = /^aws:\/\/\/([^/]*)\/([^/]+)$/.exec(providerID) ?? [];
  const instanceId = instanceIdOf(id);
  return instanceId === undefined ? undefined : { instanceId, region: regionOf(zone) };
}

/**
 * The region of a zone: `eu-west-1` for `eu-west-1a`, for the local zone `eu-west-1-lax-1a` and for
 * the Wavelength zone `eu-west-1-wl1-bos-wlz-1`. Source: EC2 User Guide, Regions and Zones.
 */
function regionOf(zone: string): string | undefined {
  return /^[a-z]{2,}(-[a-z]+)+-\d+/.exec(zone)?.[0];
}

/** Returns a valid name of a region; undefined for anything else. */
export function regionNameOf(value: unknown): string | undefined {
  const name = trimmedTextOf(value) ?? "";
  return regionOf(name) === name ? name : undefined;
}

/**
 * EC2 accepts 200 filter values per request ("FilterLimitExceeded"); ten are left for the tag and
 * the type.
 */
export const mostAskedFor = 190;

/**
 * The EC2 API for scheduled events and tags. Implemented by `ec2-client.ts`. All methods read every
 * page, and throw `LastcallError` `CLOUD_*`, or the signal's reason when it aborts.
 */
export interface Ec2 {
  /** The scheduled events of the region's instances, including completed and cancelled ones. */
  scheduledEvents(signal: AbortSignal): Promise<readonly ScheduledEvent[]>;
  /**
   * The ids of the region's instances with the tag; `only`: restricts them to these, at most 190.
   */
  tagged(tag: Tag, signal: AbortSignal, only?: readonly string[]): Promise<ReadonlySet<string>>;
}

/** A scheduled event, as EC2 reports it; any field may be missing. */
export interface ScheduledEvent {
  readonly instance?: string | undefined;
  readonly id?: string | undefined;
  /** For example `system-reboot`. */
  readonly code?: string | undefined;
  readonly description?: string | undefined;
  readonly notBeforeAt?: Instant | undefined;
}

export interface Tag {
  readonly key: string;
  /** Default: any value. */
  readonly value?: string | undefined;
}

/** EC2 treats `*` and `?` in a filter's value as wildcards. */
export function literal(text: string): string {
  return text.replaceAll(/[\\*?]/g, (sign) => `\\${sign}`);
}

/** An instance, as EC2 describes it. */
export interface Ec2Instance {
  readonly instanceId: string;
  /** EC2's own state, such as `shutting-down`. */
  readonly state: string;
  /**
   * When it was last started. An instance that was stopped and started counts as another machine.
   */
  readonly launchedAt: Instant | undefined;
  /** When it was read, by EC2's clock; absent in lists, and if the response did not say. */
  readonly asOf?: Instant | undefined;
  /** Its private DNS name, which is the name of its Node unless the AMI sets another. */
  readonly dnsName?: string | undefined;
  /** Its first private address. */
  readonly address?: string | undefined;
  /** The tag that Karpenter sets on its instances. */
  readonly nodePool: string | undefined;
  /** The tag that all instances of its cluster have. Undefined if no tag identifies the cluster. */
  readonly clusterTag?: Tag | undefined;
}

/** The Auto Scaling group that an instance is in. */
export interface Membership {
  readonly group: string;
  /** Auto Scaling's own state, such as `InService` or `Terminating:Wait`. */
  readonly state: string;
  /** Its share of the group's desired capacity; undefined if Auto Scaling names none. */
  readonly weight?: number | undefined;
}

export interface GroupSize {
  readonly desired: number;
  readonly min: number;
  /** Whether the sizes count instances; otherwise they count vCPUs or memory. */
  readonly countsInstances: boolean;
  /** Processes of the group that were suspended, such as `Launch`. */
  readonly suspended: readonly string[];
}

/**
 * The EC2 API for releases. Implemented by `ec2-client.ts`. All methods throw `LastcallError`
 * `CLOUD_*`, or the signal's reason when it aborts.
 */
export interface Ec2Instances {
  /**
   * Returns those instances that EC2 knows, including instances terminated within the last hour,
   * with one request per 190.
   */
  instances(ids: readonly string[], signal: AbortSignal): Promise<readonly Ec2Instance[]>;
  /**
   * Reads one instance; undefined only if EC2 says that it does not exist. Throws a retryable
   * CLOUD_UNREACHABLE if EC2 says neither: a list may be empty because something is hidden.
   */
  instance(id: string, signal: AbortSignal): Promise<Ec2Instance | undefined>;
  terminate(instanceId: string, signal: AbortSignal): Promise<void>;
  /** Throws what `terminate` would throw for lack of permissions, and changes nothing. */
  tryTerminate(instanceId: string, signal: AbortSignal): Promise<void>;
}

/** An instance and its group, as last read. */
export interface Ec2Machine {
  readonly instance: Ec2Instance;
  /** Looked up only for a running instance. */
  readonly membership: Membership | undefined;
}

type Ec2Stage = "Running" | "Leaving" | "Gone";

/** A stopped instance no longer runs pods, and comes back as another machine. */
export function stageOf({ state }: Ec2Instance): Ec2Stage {
  if (state === "terminated" || state === "stopped") return "Gone";
  return state === "shutting-down" || state === "stopping" ? "Leaving" : "Running";
}

/**
 * The machine id in the ledger: `i-0abc@2026-11-24T15:00:00Z`, because an instance keeps its id
 * when it is started again.
 */
export function machineIdOf({ instanceId, launchedAt }: Ec2Instance): string {
  return launchedAt === undefined ? instanceId : `${instanceId}@${formatInstant(launchedAt)}`;
}

/**
 * The host names that EC2 gives: `ip-10-0-1-2`, or the instance id where the subnet says so. EKS,
 * kops and the AWS cloud provider name nodes so; elsewhere a Node may have any name. The domain is
 * the network's own. Source: EC2 User Guide, hostname types.
 */
const hostForm = /^(?:ip(?:-\d+){4}|i-[0-9a-f]+)$/;

/** Undefined for an instance without a network, as after its end. */
export function namesOf({ instanceId, dnsName, address }: Ec2Instance): MachineNames | undefined {
  if (dnsName === undefined && address === undefined) return undefined;
  const byAddress = address === undefined ? [] : [`ip-${address.replaceAll(".", "-")}`];
  const byName = dnsName === undefined ? byAddress : [dnsName, ...byAddress];
  return { hosts: [instanceId, ...byName], form: hostForm };
}

/** Returns the client for a region. */
export type InRegion<Client> = (region: InstanceRef["region"]) => Client;

/** The instances that may depart, to be looked up in advance. */
export type KnownInstances = () => readonly InstanceRef[];

/** The instance of an action. Throws if the departing machine is not an EC2 instance. */
export function instanceOf({ target }: Pick<ActionTask, "target">): InstanceRef {
  const found = target.providerID === undefined ? undefined : findInstanceRef(target.providerID);
  const instanceId = found?.instanceId ?? instanceIdOf(target.instanceId);
  if (instanceId !== undefined) return { instanceId, region: found?.region ?? target.region };
  throw new LastcallError(
    "ACTION_REFUSED",
    `Cannot act on ${target.node} in AWS: its providerID is ${target.providerID ?? "missing"}, expected an EC2 instance, such as aws:///eu-west-1a/i-0123456789abcdef0`,
  );
}

/**
 * The problem that AWS reports for a field of an action. Throws if AWS cannot be reached, or the
 * signal's reason when it aborts.
 */
export async function problemOf(
  field: string,
  signal: AbortSignal,
  look: () => Promise<void>,
): Promise<ActionProblem | undefined> {
  try {
    await look();
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    const { code, message, retryable } = asFault(error);
    if (retryable) throw error;
    // "Cannot <action>: found <what>, expected <what>", or with what to do instead of the last.
    const told = /: (?:found )?(.*), expected (.*)$/s.exec(message);
    const [, found = message, wanted = "what AWS accepts"] =
      told ?? /: (?:found )?(.*), ([^,]*)$/s.exec(message) ?? [];
    return { code, field, found, wanted };
  }
}

/** Creates one client per region, on first use. */
export function oneEach<Client>(make: InRegion<Client>): InRegion<Client> {
  const clients = new Map<string | undefined, Client>();
  return (region) => {
    const client = clients.get(region) ?? make(region);
    clients.set(region, client);
    return client;
  };
}

/**
 * Returns `eu-west-1` for `arn:aws:sns:eu-west-1:123456789012:spot`; undefined for a plain name.
 */
export function regionOfArn(arn: string): string | undefined {
  return /^arn:[^:]+:[^:]+:([a-z0-9-]+):/.exec(arn)?.[1];
}

/** AWS's limits for the key and value of a tag. */
const longestKey = 128;

const longestValue = 256;

/**
 * Parses `KEY` or `KEY=VALUE`. Keys that contain `=` are not supported. Throws CONFIG_INVALID with
 * the option's name.
 */
export function parseManagedTag(text: string): Tag {
  const at = text.indexOf("=");
  const key = at < 0 ? text : text.slice(0, at);
  const value = at < 0 ? undefined : text.slice(at + 1);
  const isKey = key.trim() !== "" && key.length <= longestKey;
  if (isKey && (value ?? "").length <= longestValue) return { key, value };
  throw new LastcallError(
    "CONFIG_INVALID",
    `Cannot use --aws-managed-tag: found ${JSON.stringify(text.slice(0, 60))}, expected KEY or KEY=VALUE with a key of 1 to ${longestKey} and a value of up to ${longestValue} characters`,
  );
}

/**
 * The EC2 Auto Scaling API for releases. Implemented by `auto-scaling.ts`; throws as `Ec2Instances`
 * does.
 */
export interface ScalingGroups {
  /** Undefined if the instance is in no group. */
  membership(instanceId: string, signal: AbortSignal): Promise<Membership | undefined>;
  size(group: string, signal: AbortSignal): Promise<GroupSize | undefined>;
  terminate(
    instanceId: string,
    how: { readonly group: string; readonly desired: "Kept" | "Decremented" },
    signal: AbortSignal,
  ): Promise<void>;
}
