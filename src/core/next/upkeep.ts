import { type Departure, isLive, isUnderWay } from "../departure/departure.ts";
import { statusNoticed } from "../departure/ledger.ts";
import { isMarkOutdated, isOvertaken, mayShowMark } from "../notice/interruption.ts";
import { actionsKept } from "./action-steps.ts";
import type { Evaluation } from "./evaluation.ts";

/**
 * What nothing waits for, beside the steps: the actions that are on their way, and what follows a
 * notice, its entry in the timeline and newer marks on the node.
 */
export function keepUp(evaluation: Evaluation): void {
  const { scene, memory } = evaluation;
  actionsKept(evaluation);
  const { departure, node } = scene;
  if (evaluation.isNoticed && isUnderWay(evaluation) && isLive(evaluation)) {
    evaluation.intend(statusNoticed(evaluation.departure, evaluation.now.at));
  }
  if (isOvertaken(departure)) evaluation.attempt({ kind: "DropInstant", key: "instant" });
  const notice = noticeOf(departure);
  if (memory.markedFor === undefined) evaluation.remember({ markedFor: notice });
  if (node === undefined || !mayShowMark(evaluation.departure, node)) return;
  if (evaluation.memory.markedFor === notice && !isMarkOutdated(departure, node)) return;
  // The cordon writes the marks as well.
  if (isCordonAwaited(evaluation)) return;
  const key = `marks ${notice}`;
  const renewed = evaluation.attempt({ kind: "RenewMarks", key });
  if (renewed === undefined) return;
  evaluation.forget(key);
  evaluation.remember({ markedFor: notice });
}

function isCordonAwaited({ memory, requests }: Evaluation): boolean {
  const { cordonedMs, asked } = memory;
  const isPending = asked.cordon !== undefined && asked.cordon.answer === undefined;
  return cordonedMs === undefined && (isPending || requests.some(({ kind }) => kind === "Cordon"));
}

/** Identifies the current notice, to detect a new one. */
function noticeOf({ cause, deadlineAt, noticedAt }: Departure): string {
  return `${cause} ${deadlineAt} ${noticedAt}`;
}
