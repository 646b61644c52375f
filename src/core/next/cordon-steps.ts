import { departureAnnotation } from "../notice/interruption.ts";
import { minutes } from "../time/time.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";

/** Cordons and marks the node in one patch that checks its identity. */
export function cordoned(evaluation: Evaluation): StepFinding {
  const { memory, scene, now } = evaluation;
  if (memory.cordonedMs !== undefined) return undefined;
  const answer = evaluation.ask({ kind: "Cordon", seen: scene.node, key: "cordon" });
  switch (answer?.kind) {
    case "Done":
      evaluation.remember({ cordonedMs: now.ms });
      evaluation.says.push({ kind: "Cordoned" });
      return undefined;
    case "Gone":
      return { event: "NodeGone", reason: "NodeGone" };
    case "Mismatch":
      return { event: "MachineReplaced", reason: "WrongMachine", detail: answer.found };
    case "NotOurs":
      return yieldedTo(answer.departure, evaluation);
    default:
      return "Wait";
  }
}

/** Yields to the departure that owns the node, and hands a notice over to it. */
function yieldedTo(owner: string, evaluation: Evaluation): StepFinding {
  const yielded = { event: "Cancelled", reason: "LeftToOthers", detail: owner } as const;
  if (!evaluation.isNoticed) return yielded;
  const handOver = `hand over to ${owner}`;
  const handed = evaluation.ask({ kind: "HandOver", owner, key: handOver });
  if (handed === undefined) return "Wait";
  if (handed.kind === "Done") return yielded;
  const clear = `clear marks of ${owner}`;
  if (evaluation.ask({ kind: "Uncordon", departure: owner, key: clear }) === undefined)
    return "Wait";
  for (const key of ["cordon", handOver, clear]) evaluation.forget(key);
  return cordoned(evaluation);
}

/**
 * How long an uncordon may fail of a node that shows nothing of ours: the watch has no such node,
 * or shows it without our marks. If it has some after all, they are those of an ended departure,
 * and are removed when they are seen.
 */
const unseenFailingMs = minutes(1);

function isSeenMarked({ scene, memory, departure }: Evaluation): boolean {
  const { node } = scene;
  if (node?.uid !== departure.node.uid) return false;
  // What the watch shows may be older than a cordon of this process.
  return (
    memory.cordonedMs !== undefined || node.annotations[departureAnnotation] === departure.name
  );
}

/** Uncordons the node; one that Lastcall did not cordon stays as it is. */
export function uncordoned(evaluation: Evaluation): StepFinding {
  const { departure, scene, now } = evaluation;
  const { name } = departure;
  const uncordon = { kind: "Uncordon", departure: name, seen: scene.node } as const;
  const freed = evaluation.ask({ ...uncordon, key: "uncordon" });
  if (freed !== undefined) return undefined;
  const { fault, isInFlight, sinceMs = now.ms } = evaluation.memory.asked.uncordon ?? {};
  if (fault === undefined || isSeenMarked(evaluation)) return "Wait";
  const endsMs = sinceMs + unseenFailingMs;
  if (now.ms >= endsMs) return isInFlight ? "Wait" : undefined;
  evaluation.lookAtMs(endsMs);
  return "Wait";
}
