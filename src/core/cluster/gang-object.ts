import {
  type Fields,
  fieldsOf,
  listOf,
  textListOf,
  textOf,
  wholeNumberOf,
} from "../json/json-field.ts";

/**
 * The objects that say whether the pods of a workload on several nodes end together, where the
 * pods do not say it themselves.
 */
export interface GangObjectKind {
  readonly kind: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  /** What a sentence calls the workload, before its namespace and name. */
  readonly workload: string;
  /** Whether the other pods stay as they are if one is lost, by the object's spec. */
  readonly goesOn: (spec: Fields) => boolean;
}

export const volcanoJob: GangObjectKind = {
  ...{ kind: "Job", group: "batch.volcano.sh", version: "v1alpha1", resource: "jobs" },
  ...{ workload: "Volcano Job", goesOn: needsOnePod },
};

/**
 * With these policies only the lost pod is created again. The workers belong to their leader's pod,
 * so all of them start over if that is lost: once, as for a workload on one node. Source: lws
 * `api/leaderworkerset/v1` (`Default` is the former name) and `pkg/controllers/pod_controller.go`.
 */
const podsAlone = new Set<unknown>(["None", "Default"]);

export const leaderWorkerSet: GangObjectKind = {
  ...{ kind: "LeaderWorkerSet", group: "leaderworkerset.x-k8s.io" },
  ...{ version: "v1", resource: "leaderworkersets", workload: "LeaderWorkerSet" },
  goesOn: ({ leaderWorkerTemplate }) => podsAlone.has(fieldsOf(leaderWorkerTemplate).restartPolicy),
};

/** Source: `PodGroup.spec.minMember` of volcano `pkg/apis/scheduling/v1beta1`. */
export const volcanoPodGroup: GangObjectKind = {
  ...{ kind: "PodGroup", group: "scheduling.volcano.sh", version: "v1beta1" },
  ...{ resource: "podgroups", workload: "pod group", goesOn: needsOneMember },
};

/** Source: scheduler-plugins `apis/scheduling/v1alpha1`, with the same field. */
export const coschedulingPodGroup: GangObjectKind = {
  ...{ kind: "PodGroup", group: "scheduling.x-k8s.io", version: "v1alpha1" },
  ...{ resource: "podgroups", workload: "pod group", goesOn: needsOneMember },
};

export const gangObjectKinds: readonly GangObjectKind[] = [
  ...[volcanoJob, leaderWorkerSet, volcanoPodGroup, coschedulingPodGroup],
];

function needsOneMember({ minMember }: Fields): boolean {
  return wholeNumberOf(minMember) === 1;
}

/** Events and actions of Volcano that concern no other pod than the one that is lost. */
const harmlessEvents = new Set(["PodPending", "PodRunning", "TaskCompleted", "CommandIssued"]);
const harmlessActions = new Set(["SyncJob", "ResumeJob", "EnqueueJob", "RestartPod"]);

/**
 * Whether the other pods of a Volcano Job stay as they are if one is lost, by its spec: one of them
 * suffices, and no policy ends others. If unset, all of them are needed. Source: volcano
 * `pkg/webhooks/admission/jobs/mutate`.
 */
function needsOnePod(spec: Fields): boolean {
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
