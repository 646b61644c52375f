import type { PodFacts } from "../cluster/pod.ts";
import type { PhaseResult } from "../departure/ledger.ts";
import { machineLost, wholeIdentity } from "../notice/machine-lost.ts";
import { inEnglish } from "../reason/english.ts";
import type { Evaluation } from "./evaluation.ts";

/** The result for a Departure that no longer exists. */
const departureDeleted: PhaseResult = {
  ...{ event: "Cancelled", reason: "CancelledByPerson" },
  detail: inEnglish({ says: "detail.DepartureDeleted" }),
};

/**
 * The pods that belong to the departing machine. Pods are bound to a node by name only, and the
 * watch that would show a replaced node may have stalled. So pods that appear after the last
 * identity check count only after another read of the node and the Departure. While the node cannot
 * be read, they are not touched, even under a notice: they may be another machine's.
 */
export function ownPods(
  pods: readonly PodFacts[],
  evaluation: Evaluation,
): { readonly pods: readonly PodFacts[]; readonly lost?: PhaseResult | undefined } {
  const known = new Set(evaluation.memory.own);
  const strange = pods.filter(({ uid }) => !known.has(uid));
  if (strange.length === 0) return { pods };
  const before = evaluation.memory.strangers;
  const strangers = Object.fromEntries(
    strange.map(({ uid }) => [uid, before[uid] ?? evaluation.now.number]),
  );
  evaluation.remember({ strangers });
  const since = Math.min(...Object.values(strangers));
  const read = evaluation.hope("nodeNow", since);
  const isLive = evaluation.hope("isLive", since);
  const own = pods.filter(({ uid }) => known.has(uid));
  if (read === undefined || isLive === undefined) return { pods: own };
  if (!isLive) return { pods: own, lost: departureDeleted };
  const { target } = evaluation.memory;
  const { node } = evaluation.departure;
  const lost = machineLost(target === undefined ? node : wholeIdentity(node, target), read.node);
  if (lost !== undefined) return { pods: own, lost };
  return { pods: [...own, ...accepted(strange, strangers, evaluation)] };
}

/** Those that were there before the reads. None waits for the reads of one that came later. */
function accepted(
  strange: readonly PodFacts[],
  strangers: Readonly<Record<string, number>>,
  evaluation: Evaluation,
): readonly PodFacts[] {
  const readAt = Math.min(evaluation.numberOf("nodeNow"), evaluation.numberOf("isLive"));
  const later = Object.entries(strangers).filter(([, seenAt]) => seenAt > readAt);
  const left = Object.fromEntries(later);
  const found = strange.filter(({ uid }) => !(uid in left));
  const own = [...evaluation.memory.own, ...found.map(({ uid }) => uid)];
  evaluation.remember({ own, strangers: left });
  if (later.length === 0) return found;
  const since = Math.min(...later.map(([, seenAt]) => seenAt));
  for (const name of ["nodeNow", "isLive"] as const) evaluation.hope(name, since);
  return found;
}

/** Accepts pods that were listed just after the identity check. */
export function trust(pods: readonly PodFacts[], evaluation: Evaluation): void {
  evaluation.remember({ own: pods.map(({ uid }) => uid), strangers: {} });
}
