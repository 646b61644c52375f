import { type Departure, isLive } from "../departure/departure.ts";
import type { DrainReason } from "../departure/drain-reason.ts";
import type { DrainRule } from "../policy/policy.ts";
import { plus } from "../time/time.ts";
import type { DrainPlan, PlannedPod } from "./drain-plan.ts";
import { explainDrain } from "./drain-plan-report.ts";

/** Reasons that only a change of the pod, of its budget or of the policy removes. */
const lasting: ReadonlySet<DrainReason> = new Set([
  "BudgetImpossible",
  "MultipleBudgets",
  "SingleReplica",
  "DoNotDisturb",
  "DoNotDisrupt",
  "NotSafeToEvict",
  "BlockRule",
]);

/**
 * Why a planned drain would be rolled back, which would evict the other pods for nothing: a pod
 * that will not leave within the timeout, or one that blocked the node's last drain and is still
 * blocked, as far as its pods can be listed. Undefined if nothing of the kind is known, or if the
 * policy does not roll back.
 */
export function drainObstacle(
  plan: DrainPlan | "Unlisted",
  about: { readonly rule: DrainRule; readonly former: readonly Departure[] },
): string | undefined {
  if (about.rule.onTimeout !== "RollBack") return undefined;
  const before = leftByLastDrain(about.former);
  if (plan === "Unlisted") return namesOf([...before], stillUnknown);
  const endAt = plus(plan.at, about.rule.timeoutMs);
  const stuck = plan.pods.filter((pod) => {
    if (pod.action !== "Block") return false;
    const isLasting = lasting.has(pod.reason) && (pod.freeAt === undefined || pod.freeAt > endAt);
    return isLasting || before.has(nameOf(pod));
  });
  return namesOf(stuck, (pod) => `${nameOf(pod)} ${explainDrain(pod.reason, pod)}`);
}

function stillUnknown(name: string): string {
  return `${name} was left by the last drain, and the pods cannot be listed now`;
}

function namesOf<Pod>(pods: readonly Pod[], say: (pod: Pod) => string): string | undefined {
  const [first] = pods;
  if (first === undefined) return undefined;
  const more = pods.length - 1;
  return more === 0 ? say(first) : `${say(first)}, and ${more} more ${more === 1 ? "pod" : "pods"}`;
}

/** The pods that the last drain of the node left behind, as far as its status names them. */
function leftByLastDrain(former: readonly Departure[]): ReadonlySet<string> {
  const drained = former.filter((one) => !isLive(one) && one.status.drain !== undefined);
  const last = drained.toSorted((a, b) => (a.status.endedAt ?? 0) - (b.status.endedAt ?? 0)).at(-1);
  if (last?.status.outcome !== "RolledBack") return new Set();
  const left = last.status.drain?.notClean ?? [];
  return new Set(left.filter(({ outcome }) => outcome === "LeftBehind").map(nameOf));
}

function nameOf({ namespace, name }: Pick<PlannedPod, "namespace" | "name">): string {
  return `${namespace}/${name}`;
}
