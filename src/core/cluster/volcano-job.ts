import {
  type Fields,
  fieldsOf,
  listOf,
  textListOf,
  textOf,
  wholeNumberOf,
} from "../json/json-field.ts";

/** Events and actions of Volcano that concern no other pod than the one that is lost. */
const harmlessEvents = new Set(["PodPending", "PodRunning", "TaskCompleted", "CommandIssued"]);
const harmlessActions = new Set(["SyncJob", "ResumeJob", "EnqueueJob", "RestartPod"]);

/**
 * Whether the other pods of a Volcano Job stay as they are if one is lost, by its spec: one of them
 * suffices, and no policy ends others. If unset, all of them are needed. Source: volcano
 * `pkg/webhooks/admission/jobs/mutate`.
 */
export function needsOnePod(spec: Fields): boolean {
  return wholeNumberOf(spec.minAvailable) === 1 && !endsOthers(spec);
}

/**
 * Whether a policy of the Job or of its tasks ends other pods if one of them fails or is evicted;
 * without one it is only created again. Source: volcano `pkg/controllers/job/
 * job_controller_util.go`, applyPolicies, and `pkg/apis/bus/v1alpha1`.
 */
function endsOthers({ policies, tasks }: Fields): boolean {
  const all = [policies, ...listOf(tasks).map((task) => fieldsOf(task).policies)].flatMap(listOf);
  return all.map(fieldsOf).some(({ event, events, action }) => {
    const named = [textOf(event) ?? [], textListOf(events)].flat();
    const concerns = named.length === 0 || named.some((one) => !harmlessEvents.has(one));
    return concerns && !harmlessActions.has(textOf(action) ?? "");
  });
}
