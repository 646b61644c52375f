import { knownClouds } from "../cloud/facts/known-clouds.ts";
import type { NodeFacts } from "../core/cluster/node.ts";
import type { BudgetFacts, FailedPod, NodeSelector } from "../core/cluster/pod.ts";
import type { Departure } from "../core/departure/departure.ts";
import {
  type BadPolicy,
  defaultNodeSelector,
  matchesNodeSelector,
  type Policy,
  type ReleaseMode,
  selectPolicy,
} from "../core/policy/policy.ts";
import type { Instant, Millis } from "../core/time/time.ts";
import type { ErrorCode, LastcallError } from "../errors.ts";
import type { Drainer } from "./drain-rights.ts";

/** What sets up the controller's permissions, in sentences. */
export const setupCommand = `lastcall setup ${knownClouds.map(({ name }) => name).join("|")}`;

/** The result of a request, or why there is none. */
export type Fact<Value> =
  | { readonly kind: "Known"; readonly value: Value }
  | {
      readonly kind: "Unknown";
      /** A sentence without its period. */
      readonly why: string;
      readonly code?: ErrorCode | undefined;
      /** Whether a retry may succeed. */
      readonly passing?: boolean;
    };

export function known<Value>(value: Value): Fact<Value> {
  return { kind: "Known", value };
}

export function unknown(why: string, fault?: LastcallError): Fact<never> {
  return { kind: "Unknown", why, code: fault?.code, passing: fault?.retryable ?? false };
}

/** The input of all checks. Facts are independent: a missing one does not hide the others. */
export interface DoctorFacts {
  readonly at: Instant;
  /** The version of the running program. */
  readonly version: string;
  /** Whether it runs in a pod of the cluster, such as the controller's. */
  readonly inPod: boolean;
  /** The namespace in which the controller is looked up. */
  readonly namespace: string;
  readonly api: Fact<{ readonly major: number; readonly minor: number; readonly name: string }>;
  /** How far the API server's clock is ahead of the local clock; negative if it is behind. */
  readonly clockAheadMs: Fact<Millis>;
  readonly home: Fact<HomeFacts>;
  readonly definitions: Fact<readonly DefinitionFacts[]>;
  readonly rights: Fact<readonly RightFacts[]>;
  readonly agentRights: Fact<readonly RightFacts[]>;
  readonly lease: Fact<LeaseFacts | undefined>;
  /** Who leads by a Lease in another namespace. */
  readonly otherLeaders: Fact<readonly LeaderFacts[]>;
  readonly controller: Fact<WorkloadFacts | undefined>;
  readonly agent: Fact<WorkloadFacts | undefined>;
  readonly ownPods: Fact<readonly OwnPod[]>;
  /** The annotations of the controller's ServiceAccount. */
  readonly accountAnnotations: Fact<Readonly<Record<string, string>>>;
  readonly nodes: Fact<readonly NodeFacts[]>;
  readonly policies: Fact<PolicyFacts>;
  readonly departures: Fact<readonly Departure[]>;
  readonly budgets: Fact<readonly BudgetFacts[]>;
  readonly otherTools: Fact<readonly OtherTool[]>;
  readonly agentTrials: Fact<readonly AdmissionTrial[]>;
  readonly controllerTrials: Fact<readonly AdmissionTrial[]>;
  /** Whether one more pod of each workload would be admitted. */
  readonly podTrials: Fact<readonly PodTrial[]>;
  readonly drainers: Fact<readonly Drainer[]>;
  /** Priority classes that a ResourceQuota of the namespace covers. */
  readonly quotaClasses: Fact<ReadonlySet<string>>;
  readonly priorityClasses: Fact<ReadonlySet<string>>;
  readonly machines: Fact<readonly MachineFacts[]>;
  /**
   * The providerIDs of long-running machines that are not nodes, in the groups of some of these.
   */
  readonly orphanMachines: Fact<readonly string[]>;
  /** Undefined if the controller reads no queue. */
  readonly queue: Fact<QueueFacts | undefined>;
  readonly alerts: readonly AlertFacts[];
  readonly failedPods: Fact<readonly FailedPod[]>;
  readonly localVolumes: Fact<readonly LocalVolumeFacts[]>;
  readonly grace: Fact<{ readonly errors: number; readonly worst: string | undefined }>;
}

/** A persistent volume on the disk of one machine. */
export interface LocalVolumeFacts {
  /** `namespace/name` of the claim that uses it. */
  readonly claim: string;
  /** The nodes from which it can be reached. */
  readonly nodes: NodeSelector;
}

/** The namespace in which the installation is looked up. */
export interface HomeFacts {
  readonly exists: boolean;
  /** The namespace of a controller, if there is one anywhere. */
  readonly controllerIn: string | undefined;
}

/** How the API server answered a request in a dry run. */
export type TrialAnswer =
  | { readonly kind: "Accepted" }
  /** By RBAC, before any admission. */
  | { readonly kind: "NotGranted" }
  /** By admission; `policy` is the ValidatingAdmissionPolicy, if it was one. */
  | {
      readonly kind: "Denied";
      readonly policy: string | undefined;
      readonly message: string;
    }
  | { readonly kind: "Unknown"; readonly why: string };

/** What an account has to be able to do, and the abuse that a policy must refuse to it. */
export interface AdmissionTrial {
  readonly who: string;
  /** Completes "may …": `report a notice of its own node`. */
  readonly act: string;
  readonly needed: TrialAnswer;
  /** Whether the installation does it as it is set up. */
  readonly isUsed: boolean;
  /** Completes "may …", too. */
  readonly abuse: string;
  readonly forbidden: TrialAnswer;
  /** The file whose policy refuses the abuse. */
  readonly policyFile: string;
}

export interface PodTrial {
  readonly who: string;
  readonly answer: TrialAnswer;
}

export interface DefinitionFacts {
  readonly name: string;
  readonly established: boolean;
  readonly served: readonly string[];
  /** Whether its schema is that of this version. */
  readonly sameSchema: boolean;
}

export interface RightFacts {
  /** In the notation of kubectl auth can-i: `patch nodes/status`. */
  readonly name: string;
  readonly allowed: boolean;
}

export interface LeaderFacts {
  readonly namespace: string;
  readonly holder: string;
}

export interface LeaseFacts {
  readonly holder: string | undefined;
  readonly renewedAt: Instant | undefined;
  readonly durationMs: Millis;
}

/** A Deployment or DaemonSet of Lastcall. */
export interface WorkloadFacts {
  readonly namespace: string;
  readonly name: string;
  readonly serviceAccount: string;
  readonly wanted: number;
  readonly ready: number;
  /** Why the API server creates no pods for it, such as a quota. */
  readonly refused?: string | undefined;
  readonly image: string;
  readonly hostNetwork: boolean;
  readonly priorityClass: string | undefined;
  readonly podLabels: Readonly<Record<string, string>>;
  /** Whether an update starts a new pod while an old one still runs. */
  readonly overlaps: boolean;
  /** By the option's name, as set by flags and variables. */
  readonly options: Readonly<Record<string, string>>;
  readonly hiddenOptions: readonly HiddenOptions[];
  /** `helm.sh/chart`, if it was installed by a chart. */
  readonly chart: string | undefined;
}

/** Options whose values the workload does not show. */
export interface HiddenOptions {
  /** Undefined if any option may be among them. */
  readonly option: string | undefined;
  /** Such as `ConfigMap lastcall-options`. */
  readonly place: string;
}

export interface OwnPod {
  readonly name: string;
  readonly uid: string;
  readonly component: string;
  readonly node: string | undefined;
  readonly ready: boolean;
  /** Why a container is waiting, such as ImagePullBackOff. */
  readonly waiting: string | undefined;
  /** The scheduler's message if it found no node. */
  readonly unscheduled: string | undefined;
}

export interface PolicyFacts {
  readonly policies: readonly Policy[];
  readonly bad: readonly BadPolicy[];
  /** By the policy's name, as the controller has written it. */
  readonly states: ReadonlyMap<string, PolicyState>;
}

export interface PolicyState {
  readonly observedGeneration: number | undefined;
  /** The message of the condition Feasible if it is False. */
  readonly infeasible: string | undefined;
  /** The message of the condition Ready if it is not True. */
  readonly notReady?:
    | { readonly status: "False" | "Unknown"; readonly message: string }
    | undefined;
}

export interface OtherTool {
  readonly tool: string;
  /** `Deployment kube-system/x`. */
  readonly place: string;
  /** Whether it drains nodes on a notice, or terminates machines, as Lastcall does. */
  readonly rival: boolean;
}

/** What the cloud says about the machine of one node. */
export interface MachineFacts {
  readonly node: string;
  readonly providerID: string;
  readonly cloud: string;
  readonly nodeReady: boolean;
  readonly mode: ReleaseMode;
  readonly state: Fact<
    | { readonly kind: "Absent" }
    | { readonly kind: "Present"; readonly running: boolean; readonly launchKnown: boolean }
  >;
  /** Undefined if its policy releases nothing. */
  readonly release?: Fact<
    | { readonly kind: "Possible"; readonly permission: "Granted" | "Unknown" }
    | { readonly kind: "Impossible"; readonly problem: string }
  >;
}

export interface QueueFacts {
  readonly waiting: number;
  readonly inFlight: number;
}

export interface AlertFacts {
  readonly policy: string;
  /** Unknown without a code: it was not asked, because the allowed hosts are not known. */
  readonly firing: Fact<readonly string[]>;
}

/** An option as the workload sets it; undefined if it does not. Unknown if it may be hidden. */
export function optionOf(
  { options, hiddenOptions }: Pick<WorkloadFacts, "options" | "hiddenOptions">,
  name: string,
): Fact<string | undefined> {
  const value = options[name];
  if (value !== undefined) return known(value);
  const hidden = hiddenOptions.find(({ option }) => option === undefined || option === name);
  if (hidden === undefined) return known(undefined);
  return unknown(`--${name} may be set in ${hidden.place}, which is not read`);
}

/** Nodes that a cloud labels as Spot, or that a policy selects. */
export function spotNodes({
  nodes,
  policies,
}: Pick<DoctorFacts, "nodes" | "policies">): Fact<readonly NodeFacts[]> {
  if (nodes.kind === "Unknown") return nodes;
  const owners = policies.kind === "Known" ? policies.value.policies : [];
  const isSpot = (node: NodeFacts) =>
    matchesNodeSelector(node, defaultNodeSelector) || selectPolicy(node, owners) !== undefined;
  return known(nodes.value.filter(isSpot));
}

export type CheckStatus = "Pass" | "Warn" | "Fail" | "Skip";

export interface CheckResult {
  readonly status: CheckStatus;
  /** One sentence without its period. */
  readonly message: string;
  /** How to fix it. Default: the check's general fix. */
  readonly fix?: string | undefined;
}

/** One check. Pure: it evaluates facts and reads nothing else. */
export interface Check {
  readonly id: string;
  /** What is checked, for the documentation: a phrase without a period. */
  readonly looksAt: string;
  /** How to fix it if it does not pass: a command, or the page to follow. */
  readonly fix: string;
  readonly run: (facts: DoctorFacts) => CheckResult;
}

export function pass(message: string): CheckResult {
  return { status: "Pass", message };
}

export function warn(message: string, fix?: string): CheckResult {
  return { status: "Warn", message, fix };
}

export function fail(message: string, fix?: string): CheckResult {
  return { status: "Fail", message, fix };
}

export function skip(message: string): CheckResult {
  return { status: "Skip", message };
}

/** Evaluates a known fact; reports an unknown one. */
export function judging<Value>(
  fact: Fact<Value>,
  judge: (value: Value) => CheckResult,
): CheckResult {
  return fact.kind === "Known" ? judge(fact.value) : skip(fact.why);
}

/** `a, b and 3 more`. */
export function namesOf(names: readonly string[], most = 3): string {
  const shown = names.slice(0, most);
  const rest = names.length - shown.length;
  return rest > 0 ? `${shown.join(", ")} and ${rest} more` : shown.join(", ");
}

/** `a is` or `a, b are`. */
export function namesWith(names: readonly string[], one: string, many: string): string {
  return `${namesOf(names)} ${names.length === 1 ? one : many}`;
}
