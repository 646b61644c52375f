import { recordOf } from "../api/frozen-copy.ts";
import type { ModelObject } from "../api/model-object.ts";
import { readJsonPath } from "./json-path.ts";

/** `1/2`: how many of the containers are ready. */
export function podReady(pod: ModelObject): string {
  const wanted = readJsonPath(pod, ".spec.containers");
  const statuses = readJsonPath(pod, ".status.containerStatuses");
  const isRunning = recordOf(pod.status).phase === "Running";
  const ready = Array.isArray(statuses)
    ? statuses.filter((one) => isRunning && recordOf(one).ready === true).length
    : 0;
  return `${ready}/${Array.isArray(wanted) ? wanted.length : 0}`;
}

/** What kubectl calls the status: Terminating and a reason go before the phase. */
export function podStatus(pod: ModelObject): string {
  const { phase, reason } = recordOf(pod.status);
  if (pod.metadata.deletionTimestamp !== undefined) return "Terminating";
  if (typeof reason === "string" && reason !== "") return reason;
  if (phase === "Succeeded") return "Completed";
  if (phase === "Failed") return "Error";
  const isPlaced = Boolean(recordOf(pod.spec).nodeName);
  return phase === "Pending" && isPlaced ? "ContainerCreating" : String(phase ?? "Unknown");
}
