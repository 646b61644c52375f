import type { LastcallError } from "../../errors.ts";
import { machineKey, type NodeFacts, type NodeIdentity } from "../cluster/node.ts";
import { inEnglish } from "../reason/english.ts";
import type { Reason } from "../reason/reason.ts";
import type { Instant } from "../time/time.ts";
import type { InstanceRule, Policy, ReleaseMode } from "./policy.ts";

/** Karpenter's own label: the NodePool that created the node, and will replace it. */
const nodePoolLabel = "karpenter.sh/nodepool";

type Labelled = Pick<NodeFacts, "labels">;

/** Whether Karpenter manages the node's machine; if so, nothing else may terminate it. */
export function isKarpenters({ labels }: Labelled): boolean {
  return labels[nodePoolLabel] !== undefined;
}

/**
 * How the machine of a node is released. For Karpenter's nodes, `Recreate` (a replacement if one is
 * needed) means deleting their NodeClaims.
 */
export function releaseModeOf(
  node: Labelled,
  { release }: Pick<InstanceRule, "release">,
): ReleaseMode {
  return release === "Recreate" && isKarpenters(node) ? "NodeClaim" : release;
}

/**
 * A mode that the machine's owner does not allow, as far as the node shows, with what to write
 * instead.
 */
export function ownerProblem(node: Labelled, mode: ReleaseMode): string | undefined {
  if (!isKarpenters(node) || (mode !== "Delete" && mode !== "DeleteInstance")) return undefined;
  const pool = node.labels[nodePoolLabel];
  return `the machine belongs to Karpenter (NodePool ${pool}), set instance.release to NodeClaim instead of ${mode}`;
}

export type ReleaseReason = Extract<
  Reason,
  "ReleaseImpossible" | "CloudUnreachable" | "DrainImpossible"
>;

/** Why a node could not be drained, or its machine not be released afterwards. */
export interface ReleaseProblem {
  readonly kind: "Problem";
  readonly reason: ReleaseReason;
  /** What was found and what to do about it, without a period. */
  readonly detail: string;
}

/** A question about one machine; with `None`, only about the pods that may keep it. */
export interface ReleasabilityQuestion {
  readonly node: NodeFacts;
  readonly mode: ReleaseMode;
}

export type ReleaseAnswer = (
  | {
      readonly kind: "Possible";
      /** When to ask the cloud again; absent: never. */
      readonly untilAt?: Instant | undefined;
    }
  | ReleaseProblem
) & {
  /** The mode that was asked about; absent if the answer holds for any. */
  readonly mode?: ReleaseMode | undefined;
};

/** What is known of the machines behind nodes, by the node's uid; absent: not asked. */
export type ReleaseAnswers = ReadonlyMap<string, ReleaseAnswer>;

/** An outage may pass, so asking again can help; anything else has to be fixed by a person. */
export function problemOfFault(fault: LastcallError): ReleaseProblem {
  const reason = fault.retryable ? "CloudUnreachable" : "ReleaseImpossible";
  return { kind: "Problem", reason, detail: fault.message };
}

export function impossible(detail: string): ReleaseProblem {
  return { kind: "Problem", reason: "ReleaseImpossible", detail };
}

export function isReleaseReason(reason: string | undefined): reason is ReleaseReason {
  return (
    reason === "ReleaseImpossible" || reason === "CloudUnreachable" || reason === "DrainImpossible"
  );
}

/** What determines who could release the machine of a node. */
export type ReleasableNode = Pick<NodeFacts, "providerID" | "labels">;
export type HasReleaser = (node: ReleasableNode) => boolean;

/**
 * What is known without asking a cloud: the machine has no name, or there is no releaser for it.
 */
export function problemOfName(
  node: ReleasableNode,
  hasReleaser: HasReleaser,
): ReleaseProblem | undefined {
  const { providerID } = node;
  if (!providerID) return impossible(inEnglish({ says: "detail.NoProviderID" }));
  return hasReleaser(node) ? undefined : impossible(noReleaser(providerID));
}

export function noReleaser(providerID: string): string {
  return `this version cannot release ${providerID}; if another tool deletes drained machines, set instance.release to None`;
}

type NamedNode = Pick<NodeIdentity, "name" | "uid" | "providerID">;

/**
 * Why the machine of a node is not released: another Node names it, too. A kubelet chooses the
 * providerID of its own Node, so at most one of them is right.
 */
export function sharedMachine(node: NamedNode, others: readonly NamedNode[]): string | undefined {
  const { uid, providerID } = node;
  if (!providerID) return undefined;
  const key = machineKey(providerID);
  // Nearly all others differ in their last part, which is compared at less cost.
  const end = providerID.slice(providerID.lastIndexOf("/")).toLowerCase();
  const other = others.find(
    (one) =>
      one.uid !== uid &&
      one.providerID?.toLowerCase().endsWith(end) === true &&
      machineKey(one.providerID) === key,
  );
  return other && sharedWith(other.name, node);
}

function sharedWith(name: string, { providerID }: NamedNode): string {
  return `the Node ${name} has the same machine, ${providerID}: delete the Node that is not the machine's`;
}

/** The answers that are known without asking a cloud, by the uid of the node. */
export function answersByName(
  nodes: readonly NodeFacts[],
  hasReleaser: HasReleaser,
): Map<string, ReleaseAnswer> {
  const answers = new Map<string, ReleaseAnswer>();
  const owners = new Map<string, NodeFacts>();
  for (const node of nodes) {
    const problem = problemOfName(node, hasReleaser);
    if (problem !== undefined) answers.set(node.uid, problem);
    if (!node.providerID) continue;
    const key = machineKey(node.providerID);
    const other = owners.get(key);
    owners.set(key, node);
    if (other === undefined) continue;
    answers.set(node.uid, impossible(sharedWith(other.name, node)));
    answers.set(other.uid, impossible(sharedWith(node.name, other)));
  }
  return answers;
}

export type ReleaseVerdict =
  | { readonly kind: "Allowed" }
  | { readonly kind: "Held"; readonly reason: ReleaseReason; readonly detail: string }
  /** Planned departures fail closed: none starts before the cloud has answered. */
  | { readonly kind: "NotAsked"; readonly mode: ReleasabilityQuestion["mode"] };

export interface ReleaseCase {
  readonly policy: Pick<Policy, "instance">;
  readonly node: Pick<NodeFacts, "labels">;
  readonly answer: ReleaseAnswer | undefined;
  readonly at: Instant;
}

/** Whether a node may be drained by plan or by request, considering only its machine. */
export function releaseVerdict({ policy, node, answer, at }: ReleaseCase): ReleaseVerdict {
  const mode = releaseModeOf(node, policy.instance);
  // Nothing is asked of a cloud; what is known of the pods holds nevertheless.
  if (mode === "None") return answer?.mode === mode ? known(answer) : { kind: "Allowed" };
  const refused = ownerProblem(node, mode);
  if (refused !== undefined) return { ...impossible(refused), kind: "Held" };
  if (answer === undefined || (answer.mode ?? mode) !== mode) return { kind: "NotAsked", mode };
  if (answer.kind === "Possible") {
    const isOld = answer.untilAt !== undefined && answer.untilAt <= at;
    if (isOld) return { kind: "NotAsked", mode };
  }
  return known(answer);
}

function known(answer: ReleaseAnswer): ReleaseVerdict {
  if (answer.kind === "Possible") return { kind: "Allowed" };
  return { kind: "Held", reason: answer.reason, detail: answer.detail };
}

/** Departures of a policy that cannot start, because their machines could not be released. */
export interface ReleaseStanding {
  readonly reason: ReleaseReason;
  /** The problem of the first of them. */
  readonly detail: string;
  /** The nodes that are known to be affected; there may be more. Empty if unknown. */
  readonly nodes: readonly string[];
}

/** The release problem of the nodes that a policy has planned; undefined if none is known. */
export function releaseStanding(
  policy: Policy,
  departures: readonly { readonly node: NodeFacts }[],
  { answers, at }: { readonly answers: ReleaseAnswers | undefined; readonly at: Instant },
): ReleaseStanding | undefined {
  if (answers === undefined) return undefined;
  const found = departures.flatMap(({ node }) => {
    const verdict = releaseVerdict({ policy, node, answer: answers.get(node.uid), at });
    return verdict.kind === "Held" ? [{ name: node.name, answer: verdict }] : [];
  });
  // What a user has to change is reported before what may resolve itself.
  const lasting = found.find(({ answer }) => answer.reason !== "CloudUnreachable");
  const told = (lasting ?? found[0])?.answer;
  if (told === undefined) return undefined;
  return { reason: told.reason, detail: told.detail, nodes: found.map(({ name }) => name) };
}
