import { because, type Decision } from "../departure/decision.ts";
import { type Departure, isNoticed, isVoluntary } from "../departure/departure.ts";
import { isKnownPhase, type PhaseResult } from "../departure/ledger.ts";
import { interruptionOf, policyFor } from "../notice/interruption.ts";
import { defaultPolicy } from "../policy/policy.ts";
import { inEnglish } from "../reason/english.ts";
import { unreadableAs } from "./hold.ts";
import type { Pass } from "./pass.ts";

/**
 * Continues a departure under way. If its policy is gone or cannot be read, a new leader undoes it:
 * another policy's rules must not apply, because it might release a machine that the policy keeps.
 * Under a notice it continues regardless.
 */
export function underWay(departure: Departure, pass: Pass): Decision[] {
  const node = pass.nodes.get(departure.node.name);
  const { phase } = departure.status;
  if (!isKnownPhase(phase)) {
    const detail = inEnglish({ says: "detail.UnknownPhase", phase });
    return node ? [{ kind: "Skip", node, ...because("LeftToOthers", departure, { detail }) }] : [];
  }
  const end = endWithoutPolicy(departure, pass);
  const reason = end?.reason ?? departure.status.reason ?? "Started";
  const { detail } = end ?? {};
  return [{ kind: "Continue", departure, end, ...because(reason, departure, { detail }) }];
}

/** Undefined if the policy is there, or is not needed: a requested release continues. */
function endWithoutPolicy(departure: Departure, pass: Pass): PhaseResult | undefined {
  const { status, cause, node } = departure;
  if (!isVoluntary(cause) || isNoticed(departure)) return undefined;
  if (status.phase === "RollingBack" || status.machine !== undefined) return undefined;
  const seen = pass.nodes.get(node.name);
  // What ends it otherwise undoes it as well. In a release, only a deletion does for certain.
  const isEnding = status.phase !== "Releasing" && interruptionOf(departure, seen) !== undefined;
  if (isEnding || departure.deletionAt !== undefined) return undefined;
  const name = departure.policy ?? status.policy ?? defaultPolicy.name;
  const unread = pass.bad.get(name);
  if (unread !== undefined) return { event: "GaveUp", ...unreadableAs(unread) };
  if (name === defaultPolicy.name) return undefined;
  const own = seen?.uid === node.uid ? seen : undefined;
  if (policyFor(departure, own, pass.snapshot.policies) !== defaultPolicy) return undefined;
  return {
    event: "GaveUp",
    reason: "PlanChanged",
    detail: inEnglish({ says: "detail.PolicyDeleted", policy: name }),
  };
}
