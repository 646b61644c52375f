import type { MachineState } from "../cluster/machine.ts";
import { existedAt } from "../cluster/machine-age.ts";
import { anothersMachine } from "../cluster/machine-name.ts";
import { stillRuns } from "../notice/interruption.ts";
import type { ReleaseMode } from "../policy/policy.ts";
import { later } from "../time/time.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import type { Memory } from "./memory.ts";
import { releaseFailed } from "./release-fault.ts";
import type { DepartureScene, RequestFault } from "./scene.ts";

/**
 * Absent in a Departure that was written by hand, or by an agent: then that of the Node of the same
 * uid, which never changes, as watched, as of the last identity check, or as recorded. Undefined:
 * nothing identifies the machine.
 */
export function providerOf(of: {
  readonly scene: Pick<DepartureScene, "departure" | "node">;
  readonly memory: Pick<Memory, "target">;
}): string | undefined {
  const { node: named, status } = of.scene.departure;
  const known = [of.scene.node, of.memory.target].filter((node) => node?.uid === named.uid);
  const { providerID } = known.find((node) => node?.providerID) ?? {};
  return named.providerID ?? providerID ?? status.machine?.providerID;
}

/**
 * Looks up the machine's id, to record it before the release. Fails if the cloud knows it as
 * another one than the Node's.
 */
export function machineRecorded(
  mode: Exclude<ReleaseMode, "None">,
  evaluation: Evaluation,
): StepFinding | "Known" {
  const { status, memory, departure } = evaluation;
  const since = memory.described ?? memory.phase.number;
  const state = evaluation.hope("machine", since);
  if (state === undefined) {
    const fault = evaluation.faultOf("machine");
    return fault === undefined ? "Wait" : releaseFailed(fault, evaluation);
  }
  const providerID = providerOf(evaluation);
  const named = { name: departure.node.name, providerID };
  const another = state.kind === "Present" && anothersMachine(named, state.names);
  if (another) {
    return releaseFailed(refusal(`Cannot release the machine: ${another}`), evaluation);
  }
  const id = idOf(state, evaluation);
  if (id === undefined) return machineAbsent(state, evaluation);
  evaluation.remember({ described: since });
  evaluation.intend({ ...status, machine: { id, mode, providerID } });
  return "Known";
}

function refusal(message: string): RequestFault {
  return { code: "CLOUD_REFUSED", message, retryable: false };
}

/** The cloud finds no such machine, or a younger one: it is gone, unless its kubelet reports. */
function machineAbsent({ kind }: MachineState, evaluation: Evaluation): StepFinding {
  const reports = stillReports(evaluation);
  const unread = evaluation.faultOf("nodeNow");
  if (unread !== undefined) return releaseFailed(unread, evaluation);
  if (reports === "Wait") return "Wait";
  if (reports === "Silent") {
    evaluation.remember({ releasedNumber: evaluation.now.number });
    return undefined;
  }
  const found =
    kind === "Absent"
      ? "finds no such machine"
      : "shows a machine that is younger than the departure";
  const problem = `Cannot release ${providerOf(evaluation)}: its cloud ${found}, but its kubelet still reports; expected credentials for the account, project and region in which it runs`;
  return releaseFailed(refusal(problem), evaluation);
}

/** The node of a machine that is off is Ready for at most this long. */
const silentAfterMs = 70_000;
const silentAgainMs = 10_000;

/**
 * Whether a node stays Ready for so long that its machine must be running: a cloud that is asked in
 * the wrong account or region finds no machine either.
 */
function stillReports(evaluation: Evaluation): "Reports" | "Wait" | "Silent" {
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

/**
 * Undefined if the machine is gone. One that did not exist at the departure's start is another one,
 * which the group has created under the same name. If our clock was slow then, the Node's creation
 * shows since when its machine has existed.
 */
function idOf(state: MachineState, { scene, status, now }: Evaluation): string | undefined {
  if (state.kind === "Absent") return undefined;
  const { bornAt, asOf, id } = state;
  const { startedAt } = status;
  if (bornAt === undefined || startedAt === undefined) return id;
  const existingAt = later(startedAt, scene.node?.createdAt ?? startedAt);
  return existedAt(existingAt, { bornAt, asOf }, now.at) ? id : undefined;
}
