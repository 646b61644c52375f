import { repellingTaint } from "../capacity/node-capacity.ts";
import type { NodeSelector, NodeSelectorTerm } from "../cluster/label-selector.ts";
import type { Taint } from "../cluster/node.ts";
import type { PodPlacement, PodTerm } from "../cluster/placement.ts";
import type { PodFacts, PodIdentity, PodPhase, Toleration } from "../cluster/pod.ts";
import type { Departure } from "../departure/departure.ts";
import type { DrainPlan, PlannedPod } from "../drain-plan/drain-plan.ts";
import type { ReplacementRule } from "../policy/policy.ts";
import { type Instant, plus } from "../time/time.ts";
import { untouchable } from "./drain-turn.ts";

/** A pod that does nothing but keep room for one that will leave. */
export interface NewPlaceholder {
  /** `room-` and the uid of the pod: the same question asked twice makes one placeholder. */
  readonly name: string;
  readonly departure: { readonly name: string; readonly uid: string };
  readonly forPod: PodIdentity;
  readonly placement: PodPlacement;
  readonly tolerations: readonly Toleration[];
}

/** A placeholder as it is in the cluster. */
export interface PlaceholderFacts {
  readonly name: string;
  /** The uid of the Departure that it belongs to. */
  readonly departureUid: string;
  /** Where it is, once it is scheduled. */
  readonly node?: string | undefined;
  readonly phase: PodPhase;
  readonly ready: boolean;
  readonly leaving: "Leaving" | "Staying";
  /** The scheduler's own message where it found no node. */
  readonly trouble?: string | undefined;
}

export interface PlaceholderQuestion {
  readonly departure: Departure;
  readonly plan: DrainPlan;
  /** The pods of the node. */
  readonly pods: readonly PodFacts[];
  readonly placeholders: readonly PlaceholderFacts[];
  readonly rule: ReplacementRule;
  /** When the wait began; it counts over restarts of the controller. */
  readonly sinceAt: Instant;
  readonly now: Instant;
}

export interface ReservationStep {
  readonly create: readonly NewPlaceholder[];
  /** Names of placeholders that nobody needs, that have ended, or that are on the node itself. */
  readonly remove: readonly string[];
  readonly verdict: "Waiting" | "Ready" | "TimedOut";
  /** As in `2 of 3 pods have room; shop/web-0: 0/3 nodes are available`. */
  readonly detail: string;
  readonly endsAt: Instant;
}

export function placeholderName(podUid: string): string {
  return `room-${podUid}`;
}

/**
 * The next step of making room before a drain: a placeholder for each pod that will leave and come
 * back, until each of them runs or time is up. The same state gives the same step.
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
      .map((pod) => orderFor(pod, { departure, node: plan.node })),
    remove: placeholders
      .filter((one) => one.leaving === "Staying")
      .filter((one) => !needed.has(one.name) || hasEnded(one) || isMisplaced(one, plan))
      .map((one) => one.name),
    verdict: waiting.length === 0 ? "Ready" : now >= endsAt ? "TimedOut" : "Waiting",
    detail: `${needs.length - waiting.length} of ${needs.length} pods have room${first ? `; ${first}` : ""}`,
    endsAt,
  };
}

/**
 * Placeholders that no departure needs any more: its Departure is gone or has ended, or has come
 * past the drain. `departures` must be newer than the list of placeholders.
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
  about: { readonly departure: Departure; readonly node: string },
): NewPlaceholder {
  const { namespace, name, uid } = pod;
  const placement = pod.placement ?? anywhere;
  return {
    name: placeholderName(uid),
    departure: { name: about.departure.name, uid: about.departure.uid },
    forPod: { namespace, name, uid },
    placement: {
      ...placement,
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

/** What comes with a cordon; the scheduler takes `spec.unschedulable` itself for it. */
const cordon: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

/**
 * A pod that tolerates every taint tolerates the cordon too, so its placeholder names the node that
 * it must not come to. No other does: Karpenter ignores a pod whose affinity asks for a field of a
 * node, and lets nobody ask for the label of its name either. Source: Karpenter
 * `pkg/controllers/provisioning/provisioner.go`, validateNodeSelectorTerm.
 */
function awayFrom(node: string, tolerations: readonly Toleration[]): readonly NodeSelector[] {
  if (repellingTaint([cordon], tolerations) !== undefined) return [];
  const notThere: NodeSelectorTerm = {
    matchExpressions: [],
    matchFields: [{ key: "metadata.name", operator: "NotIn", values: [node] }],
  };
  return [{ nodeSelectorTerms: [notThere] }];
}

/** All of the selectors as one; undefined where none is given. */
function allOf(selectors: readonly (NodeSelector | undefined)[]): NodeSelector | undefined {
  const [first, ...others] = selectors.filter((selector) => selector !== undefined);
  return first && others.reduce(bothOf, first);
}

/** Terms are OR-ed, so that "and" means each with each. */
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

/** A term without a namespace means the pod's own, which the placeholder is not in. */
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
 * Pods of a plan that leave and that somebody makes again elsewhere: what there must be room for.
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
 * One that terminates already has been recreated, and one that completes is not recreated at all.
 */
function comesBack(planned: PlannedPod): boolean {
  if (planned.owner === undefined || planned.owner.kind === "DaemonSet") return false;
  if (planned.action === "Wait") return planned.reason === "RestartOwner";
  return planned.action !== "Block" || !untouchable.has(planned.reason);
}
