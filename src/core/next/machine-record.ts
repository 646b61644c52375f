import type { MachineState } from "../cluster/machine.ts";
import { existedAt } from "../cluster/machine-age.ts";
import { anothersMachine } from "../cluster/machine-name.ts";
import type { ReleaseMode } from "../policy/policy.ts";
import { later } from "../time/time.ts";
import type { Evaluation, StepFinding } from "./evaluation.ts";
import { machineAbsent } from "./machine-absent.ts";
import { providerOf } from "./provider-id.ts";
import { releaseFailed } from "./release-fault.ts";
import type { RequestFault } from "./scene.ts";

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
  if (id === undefined) {
    const found = machineAbsent(state, evaluation);
    return found === undefined || found === "Wait" ? found : releaseFailed(found, evaluation);
  }
  evaluation.remember({ described: since });
  evaluation.intend({ ...status, machine: { id, mode, providerID } });
  return "Known";
}

function refusal(message: string): RequestFault {
  return { code: "CLOUD_REFUSED", message, retryable: false };
}

/**
 * Undefined if the machine is gone. One that did not exist at the departure's start is another one,
 * which the group has created under the same name. If our clock was slow then, the creation of its
 * Node shows since when its machine has existed; the Node of that name may be another one by now.
 */
function idOf(state: MachineState, { status, now }: Evaluation): string | undefined {
  if (state.kind === "Absent") return undefined;
  const { bornAt, asOf, id } = state;
  const { startedAt, nodeCreatedAt } = status;
  if (bornAt === undefined || startedAt === undefined) return id;
  const existingAt = later(startedAt, nodeCreatedAt ?? startedAt);
  return existedAt(existingAt, { bornAt, asOf }, now.at) ? id : undefined;
}
