import type { MachineState } from "../cluster/machine.ts";
import { stillRuns } from "../notice/interruption.ts";
import type { Evaluation } from "./evaluation.ts";
import { providerOf } from "./provider-id.ts";
import type { RequestFault } from "./scene.ts";

/**
 * The cloud finds no such machine, or a younger one: it is gone (undefined), unless its kubelet
 * reports. A fault: why that cannot be known, or is not so.
 */
export function machineAbsent(
  { kind }: MachineState,
  evaluation: Evaluation,
): RequestFault | "Wait" | undefined {
  const reports = stillReports(evaluation);
  const unread = evaluation.faultOf("nodeNow");
  if (unread !== undefined) return unread;
  if (reports === "Wait") return "Wait";
  if (reports === "Silent") {
    evaluation.remember({ releasedNumber: evaluation.now.number });
    return undefined;
  }
  const found =
    kind === "Absent"
      ? "finds no such machine"
      : "shows a machine that is younger than the departure";
  const message = `Cannot release ${providerOf(evaluation)}: its cloud ${found}, but its kubelet still reports; expected credentials for the account, project and region in which it runs`;
  return { code: "CLOUD_REFUSED", message, retryable: false };
}

/** The node of a machine that is off is Ready for at most this long. */
const silentAfterMs = 70_000;
const silentAgainMs = 10_000;

/**
 * Whether a node stays Ready for so long that its machine must be running: a cloud that is asked in
 * the wrong account or region finds no machine either, and one without credentials shows none.
 */
export function stillReports(evaluation: Evaluation): "Reports" | "Wait" | "Silent" {
  const { now, memory } = evaluation;
  const absent = memory.absent ?? { sinceMs: now.ms, askedMs: now.ms, number: now.number };
  evaluation.remember({ absent });
  const read = evaluation.need("nodeNow", absent.number);
  if (read === undefined) return "Wait";
  if (!stillRuns(evaluation.departure, read.node)) return "Silent";
  if (now.ms >= absent.sinceMs + silentAfterMs) {
    evaluation.remember({ absent: undefined });
    return "Reports";
  }
  if (now.ms >= absent.askedMs + silentAgainMs) {
    evaluation.remember({ absent: { ...absent, askedMs: now.ms, number: now.number } });
    evaluation.need("nodeNow", now.number);
  }
  evaluation.lookAtMs((evaluation.memory.absent ?? absent).askedMs + silentAgainMs);
  return "Wait";
}
