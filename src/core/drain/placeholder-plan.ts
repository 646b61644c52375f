import { repellingTaint } from "../capacity/capacity-fit.ts";
import { cordonTaint, osLabel } from "../cluster/node.ts";
import type {
  NodeSelector,
  NodeSelectorTerm,
  PodFacts,
  PodIdentity,
  PodPhase,
  PodPlacement,
  PodTerm,
  Toleration,
} from "../cluster/pod.ts";
import type { Departure } from "../departure/departure.ts";
import type { DrainPlan, PlannedPod } from "../drain-plan/drain-plan.ts";
import type { ReplacementRule } from "../policy/policy.ts";
import { counted } from "../reason/counted.ts";
import { type Instant, plus } from "../time/time.ts";
import { untouchable } from "./drain-turn.ts";

/** A pod that only reserves capacity for a pod that will leave. */
export interface NewPlaceholder {
  /** `placeholder-` and the uid of the pod, so that creating it is idempotent. */
  readonly name: string;
  readonly departure: { readonly name: string; readonly uid: string };
  readonly forPod: PodIdentity;
  readonly placement: PodPlacement;
  readonly tolerations: readonly Toleration[];
}

/** A placeholder in the cluster. */
export interface PlaceholderFacts {
  readonly name: string;
  /** The uid of its Departure. */
  readonly departureUid: string;
  /** Its node, once it is scheduled. */
  readonly node?: string | undefined;
  readonly phase: PodPhase;
  readonly ready: boolean;
  readonly leaving: "Leaving" | "Staying";
  /** The scheduler's message if it found no node. */
  readonly trouble?: string | undefined;
}

export interface PlaceholderQuestion {
  readonly departure: Departure;
  readonly plan: DrainPlan;
  /** The node's operating system by its label; undefined if it has none. */
  readonly nodeOs?: string | undefined;
  /** The pods of the node. */
  readonly pods: readonly PodFacts[];
  readonly placeholders: readonly PlaceholderFacts[];
  readonly rule: ReplacementRule;
  /** When the wait started, across restarts of the controller. */
  readonly sinceAt: Instant;
  readonly now: Instant;
}

export interface ReservationStep {
  readonly create: readonly NewPlaceholder[];
  /** Names of placeholders that are not needed, have ended, or run on the node itself. */
  readonly remove: readonly string[];
  readonly verdict: "Waiting" | "Ready" | "TimedOut";
  /** For example `2 of 3 pods have room; shop/web-0: 0/3 nodes are available`. */
  readonly detail: string;
  readonly endsAt: Instant;
}

export function placeholderName(podUid: string): string {
  return `placeholder-${podUid}`;
}

/**
 * Decides the next step of a capacity reservation: one placeholder for each pod that will be
 * recreated, until all of them run or time is up. Deterministic.
 */
export function nextReservationStep(question: PlaceholderQuestion): ReservationStep {
  const { departure, plan, placeholders, rule, now } = question;
  const needs = returningPods(plan.pods, question.pods);
  const there = new Map(placeholders.map((one) => [one.name, one]));
  const needed = new Set(needs.map((pod) => placeholderName(pod.uid)));
  const waiting = needs.filter((pod) => !keepsCapacity(there.get(placeholderName(pod.uid)), plan));
  const endsAt = plus(question.sinceAt, rule.timeoutMs);
  const first = waiting.map((pod) => troubleOf(pod, there)).find((words) => words !== undefined);
  return {
    create: needs
      .filter((pod) => !there.has(placeholderName(pod.uid)))
      .map((pod) => orderFor(pod, { departure, node: plan.node, nodeOs: question.nodeOs })),
    remove: placeholders
      .filter((one) => one.leaving === "Staying")
      .filter((one) => !needed.has(one.name) || hasEnded(one) || isMisplaced(one, plan))
      .map((one) => one.name),
    verdict: waiting.length === 0 ? "Ready" : now >= endsAt ? "TimedOut" : "Waiting",
    detail: `${needs.length - waiting.length} of ${counted(needs.length, "pod")} ${needs.length === 1 ? "has" : "have"} room${first ? `; ${first}` : ""}`,
    endsAt,
  };
}

/**
 * Placeholders that are no longer needed, because their Departure is gone, has ended, or is past
 * its drain. `departures` must be newer than the list of placeholders.
 */
export function orphanPlaceholders(
  placeholders: readonly PlaceholderFacts[],
  departures: readonly Departure[],
): readonly string[] {
  const past = new Set(["Releasing", "RollingBack", "Ended"]);
  const needing = departures.filter(({ status }) => !past.has(status.phase));
  const uids = new Set(needing.map(({ uid }) => uid));
  return placeholders
    .filter((one) => one.leaving === "Staying" && !uids.has(one.departureUid))
    .map((one) => one.name);
}

function orderFor(
  pod: PodFacts,
  about: {
    readonly departure: Departure;
    readonly node: string;
    readonly nodeOs: string | undefined;
  },
): NewPlaceholder {
  const { namespace, name, uid } = pod;
  const placement = pod.placement ?? anywhere;
  return {
    name: placeholderName(uid),
    departure: { name: about.departure.name, uid: about.departure.uid },
    forPod: { namespace, name, uid },
    placement: {
      ...placement,
      // Most pods do not name their operating system; on another one there is no capacity for them.
      nodeSelector: {
        ...(about.nodeOs !== undefined && { [osLabel]: about.nodeOs }),
        ...placement.nodeSelector,
      },
      requiredNodes: allOf([
        ...awayFrom(about.node, pod.tolerations),
        placement.requiredNodes,
        ...(placement.volumeNodes ?? []),
      ]),
      volumeNodes: undefined,
      podAffinity: placement.podAffinity.map((term) => inNamespaceOf(pod, term)),
      podAntiAffinity: placement.podAntiAffinity.map((term) => inNamespaceOf(pod, term)),
    },
    tolerations: pod.tolerations,
  };
}

const anywhere: PodPlacement = {
  requests: {},
  nodeSelector: {},
  podAffinity: [],
  podAntiAffinity: [],
};

/**
 * A pod that tolerates every taint tolerates the cordon as well, so its placeholder excludes the
 * node by affinity. Other placeholders do not, because Karpenter ignores pods whose affinity names
 * a node field or the hostname label. Source: Karpenter
 * `pkg/controllers/provisioning/provisioner.go`, validateNodeSelectorTerm.
 */
function awayFrom(node: string, tolerations: readonly Toleration[]): readonly NodeSelector[] {
  if (repellingTaint([cordonTaint], tolerations) !== undefined) return [];
  const notThere: NodeSelectorTerm = {
    matchExpressions: [],
    matchFields: [{ key: "metadata.name", operator: "NotIn", values: [node] }],
  };
  return [{ nodeSelectorTerms: [notThere] }];
}

/** Combines selectors into one that requires all of them; undefined if there are none. */
function allOf(selectors: readonly (NodeSelector | undefined)[]): NodeSelector | undefined {
  const [first, ...others] = selectors.filter((selector) => selector !== undefined);
  return first && others.reduce(bothOf, first);
}

/** Terms are ORed, so an AND combines each term with each. */
function bothOf(a: NodeSelector, b: NodeSelector): NodeSelector {
  return {
    nodeSelectorTerms: a.nodeSelectorTerms.flatMap((one) =>
      b.nodeSelectorTerms.map((other) => ({
        matchExpressions: [...one.matchExpressions, ...other.matchExpressions],
        matchFields: [...one.matchFields, ...other.matchFields],
      })),
    ),
  };
}

/** Adds the pod's namespace to a term without one, since the placeholder is in another. */
function inNamespaceOf(pod: PodFacts, term: PodTerm): PodTerm {
  const named = Array.isArray(term.namespaces) && term.namespaces.length > 0;
  return named || term.namespaceSelector !== undefined
    ? term
    : { ...term, namespaces: [pod.namespace] };
}

function keepsCapacity(placeholder: PlaceholderFacts | undefined, plan: DrainPlan): boolean {
  if (placeholder === undefined || placeholder.leaving === "Leaving") return false;
  if (isMisplaced(placeholder, plan)) return false;
  return placeholder.phase === "Running" && placeholder.ready;
}

/** The scheduler may see the placeholder before it sees the cordon. */
function isMisplaced({ node }: PlaceholderFacts, plan: DrainPlan): boolean {
  return node === plan.node;
}

function hasEnded({ phase }: PlaceholderFacts): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

function troubleOf(
  pod: PodFacts,
  there: ReadonlyMap<string, PlaceholderFacts>,
): string | undefined {
  const trouble = there.get(placeholderName(pod.uid))?.trouble;
  return trouble === undefined ? undefined : `${pod.namespace}/${pod.name}: ${trouble}`;
}

/**
 * The pods of a plan that leave and are recreated elsewhere, which need capacity.
 */
export function returningPods(
  planned: readonly PlannedPod[],
  pods: readonly PodFacts[],
): readonly PodFacts[] {
  const live = new Map(pods.map((pod) => [pod.uid, pod]));
  return planned.flatMap((one) => {
    const pod = live.get(one.uid);
    return pod !== undefined && comesBack(one) ? [pod] : [];
  });
}

/**
 * A terminating pod has been recreated already, and a completing pod is not recreated.
 */
function comesBack(planned: PlannedPod): boolean {
  if (planned.owner === undefined || planned.owner.kind === "DaemonSet") return false;
  if (planned.action === "Wait") return planned.reason === "RestartOwner";
  return planned.action !== "Block" || !untouchable.has(planned.reason);
}
