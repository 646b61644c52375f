import type { CloudFacts } from "../cloud/facts/cloud-facts.ts";
import type { Rng } from "../core/chance/chance.ts";
import type { Clock } from "./clock.ts";
import type { LifecycleHooks, MachineCloud, NoticeFeed, NoticeSource } from "./cloud.ts";
import type { Fleet } from "./cluster.ts";
import type { MetadataFetch, MetadataProbe } from "./metadata.ts";

/**
 * What every command has to know of a cloud, the agent too, in `<cloud>.ts` of its folder. Its code
 * is loaded only by the functions that need it, since only one cloud is in use.
 */
export interface Cloud {
  readonly facts: CloudFacts;
  readonly options: CloudOptions;
  readonly setup: CloudSetup;
  readonly audit: CloudAudit;
  readonly doctor: CloudChecks;

  /** How an agent finds out that it is in this cloud. */
  readonly probe: MetadataProbe;
  /** The notices of the machine that this process runs on. */
  noticeSource(options: NoticeSourceOptions): Promise<NoticeSource>;
  /** Whether an agent acknowledges events of this cloud. Absent: it has no such events. */
  acknowledges?(options: object): boolean;
}

/**
 * What the controller and its set-up need of a cloud, in `<cloud>-adapters.ts` of its folder. Apart
 * from `Cloud`, because the clients are large, and the agent's image must not contain them. The
 * options are those of the command: `cloudAdapters` (src/cloud/cloud-adapters.ts) has their types.
 */
export interface CloudAdapters {
  /** Throws CONFIG_INVALID for invalid options. Contacts nobody. */
  access(options: object, parts: CloudAccessOptions): Promise<CloudAccess>;
  /** A shell script that grants the controller its permissions, or revokes them. Throws USAGE. */
  setupScript(options: object): Promise<string>;
}

/** Definitions of options (`Option` in src/config/options/option.ts). */
type CloudOptions = readonly { readonly name: string }[];

export interface CloudSetup {
  readonly options: CloudOptions;
  /** Arguments of `lastcall setup` as a user would write them. */
  readonly examples: readonly string[];
  /** What it needs `--cluster` for, following "with <cloud>". */
  readonly cluster: string;
  /** Whether permissions depend on the policies' `instance.release`. */
  readonly asksRelease: boolean;
}

export interface CloudAudit {
  /** Labels that only this cloud sets. */
  readonly ownLabels: RegExp;
  /** The shutdown grace of its nodes as shipped, by the names of `--platform`. */
  readonly platforms: Readonly<Record<string, KnownPlatform>>;
  /** Those that are checked if nothing else is known of the nodes. */
  readonly usualPlatforms: readonly string[];
  /** The platform of such a node; undefined if its grace is not known. */
  readonly platformOf: (node: NodeSoftware) => string | undefined;
}

export interface KnownPlatform {
  readonly totalSeconds: number;
  readonly criticalSeconds: number;
  /** A description for the documentation. */
  readonly what: string;
}

export interface NodeSoftware {
  /** `status.nodeInfo.kubeletVersion`, such as `v1.34.2-eks-1a2b3c4`. */
  readonly kubeletVersion: string;
  readonly osImage: string;
}

export interface CloudChecks {
  /** Tools for this cloud alone that remove nodes. */
  readonly tools: readonly RemovalTool[];
  /** Why pods cannot get the cloud identity that their ServiceAccount names. */
  readonly identityProblem?: (account: CloudAccount) => string | undefined;
  /** Pods of the system's priority classes need a quota that covers the class. */
  readonly systemPodsNeedQuota?: boolean;
  /** Set if its nodes need not have a label that tells whether they are Spot. */
  readonly unlabeledSpot?: UnlabeledSpot;
  /** What finds notices of nodes that have no agent, such as `on EC2 set up the queue`. */
  readonly agentless?: string;
}

export interface RemovalTool {
  readonly tool: string;
  /** The names of its images. */
  readonly image: RegExp;
  /** Whether it drains on a notice or terminates machines, as Lastcall does. */
  readonly rival: boolean;
}

/** What gives pods their cloud identity. */
export interface CloudAccount {
  readonly annotations: Readonly<Record<string, string>>;
  readonly podLabels: Readonly<Record<string, string>>;
}

export interface UnlabeledSpot {
  /** Its machines in a sentence, such as `EC2 instances`. */
  readonly machines: string;
  /** Labels of nodes that are no machines of their own. */
  readonly exempt: readonly string[];
  readonly fix: string;
}

export interface NoticeSourceOptions {
  /** Default: the cloud's own metadata service. */
  readonly baseUrl?: string | undefined;
  readonly fetch: MetadataFetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

export interface CloudAccessOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  readonly rng: Rng;
}

/** The controller's access to a cloud, with the credentials of this process. */
export interface CloudAccess {
  readonly machines: MachineCloud;
  /** Undefined if no lifecycle hook is completed. */
  readonly hooks?: LifecycleHooks | undefined;
  /** Absent: there are no sources of notices from outside the cluster. */
  readonly feedsFor?: (about: CloudFleet) => readonly NoticeFeed[];
}

export interface CloudFleet {
  readonly fleet: Fleet;
  /** The providerIDs of the nodes that some policy selects. */
  readonly machines: () => readonly string[];
}
