/** Workloads on several nodes that end as a whole. */
import { gangOf } from "../../core/cluster/gang.ts";
import { fieldsOf, valueAt, wholeNumberOf } from "../../core/json/json-field.ts";
import { type AuditedFleet, landingOf, mostReplicasOf } from "../fleet.ts";
import { gangPartsOf, looseGangOf } from "../objects/gang-part.ts";
import { type Manifest, nameOfObject } from "../objects/manifest.ts";
import { readPodTemplate } from "../objects/pod-template.ts";
import { namesSpot } from "../objects/spot-scope.ts";
import { identityOf, type Workload } from "../objects/workload.ts";
import { objectKey, ownerKeys } from "../objects/workload-list.ts";
import { type Remark, type Rule, spotWorkloads } from "../report.ts";

export const gangOnSpot: Rule = {
  id: "gang-on-spot",
  severity: "warning",
  title: "a workload on several nodes that ends as a whole can land on Spot nodes",
  why: "The pods of a JobSet, of a group of a LeaderWorkerSet, of a pod group (Kueue, coscheduling, Volcano, Koordinator, Kubernetes' workload API), of a Volcano Job, of a YuniKorn application with task groups, of a training job (PyTorchJob, TrainJob and the like), of Ray workers with several hosts, of a Grove PodGang or of GKE's queued provisioning work together: if one of their nodes leaves, all of them end or start over. Each node is another chance of an interruption, so one that runs on sixteen Spot nodes is interrupted sixteen times as often as one that runs on one. Lastcall does not rotate such nodes one by one (gates.gangWorkloads of the policy), but the cloud takes them one by one.",
  fix: "Write checkpoints often, keep it on stable nodes by a node selector or required node affinity, or use capacity that is provisioned and ended as a whole.",
  whenNotToUse:
    "The workload tolerates the loss of single pods, or its pods share one node. Not reported are pods that torchrun launches with a range of nodes (--nnodes=1:4, PET_NNODES, the elasticPolicy of a PyTorchJob), a LeaderWorkerSet with restartPolicy None, a group that needs one pod, and a Volcano Job with minAvailable 1 whose policies end no other pod when one fails or is evicted.",
  bad: {
    yaml: `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        parallelism: 4
        completions: 4
        template:
          spec:
            restartPolicy: Never
            containers: [{name: train, image: train}]
`,
  },
  good: {
    yaml: `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  replicatedJobs:
  - name: workers
    template:
      spec:
        parallelism: 4
        completions: 4
        template:
          spec:
            restartPolicy: Never
            nodeSelector: {cloud.google.com/gke-provisioning: standard}
            containers: [{name: train, image: train}]
`,
  },
  check: checkGangOnSpot,
};

const fix =
  "Write checkpoints often, or keep it on stable nodes by a node selector or required node affinity";

/**
 * One remark for each workload, however many of its objects are in the input: those that it owns
 * are left out.
 */
function checkGangOnSpot(fleet: AuditedFleet): readonly Remark[] {
  const remarks = new Map<string, Remark>();
  const add = (name: string, about: Remark["about"]): void => {
    const message = `Ends as a whole (${name}) when one of its nodes leaves, and may be placed on Spot nodes`;
    if (!remarks.has(name)) remarks.set(name, { severity: "warning", about, message, fix });
  };
  const named = fleet.manifests.filter((manifest) => endsOnSpot(manifest, fleet));
  const keys = new Set(named.map(objectKey));
  const isPart = (manifest: Manifest): boolean => ownerKeys(manifest).some((key) => keys.has(key));
  for (const one of named) if (!isPart(one)) add(nameOfObject(one), one);
  for (const [name, members] of markedGangs(fleet)) {
    const isTold = members.some(({ workload }) => isPart(workload.manifest));
    if (!isTold && podsOf(fleet, members) > 1) add(name, members[0]?.workload);
  }
  return [...remarks.values()];
}

interface GangMember {
  readonly workload: Workload;
  /** The number of pods that end together, if an object or the pods themselves say it. */
  readonly pods: number | undefined;
}

/** What the marks of pods name. */
function markedGangs(fleet: AuditedFleet): ReadonlyMap<string, readonly GangMember[]> {
  const declared = declaredSizes(fleet);
  const found = new Map<string, GangMember[]>();
  for (const workload of spotWorkloads(fleet)) {
    const { namespace, template } = workload;
    const gang = gangOf({ namespace, ...template });
    if (gang === undefined) continue;
    const name = gang.name.replace(/ group \d+$/, "");
    const member = { workload, pods: declared.get(name) ?? gang.pods };
    found.set(name, [...(found.get(name) ?? []), member]);
  }
  return found;
}

/** Without a statement, the pods in the input; an unknown number counts as several. */
function podsOf(fleet: AuditedFleet, members: readonly GangMember[]): number {
  const said = members.find(({ pods }) => pods !== undefined)?.pods;
  const distinct = new Map(members.map(({ workload }) => [identityOf(workload), workload]));
  const count = (sum: number, one: Workload) => sum + (mostReplicasOf(fleet, one) ?? 2);
  return said ?? distinct.values().reduce(count, 0);
}

/**
 * How many pods at a time the objects of the input say that a group needs. Sources: the fields
 * `PodGroup.spec.minMember` of scheduler-plugins and volcano; kubernetes api scheduling/v1beta1,
 * whose basic policy schedules each pod alone.
 */
function declaredSizes({ manifests }: AuditedFleet): ReadonlyMap<string, number> {
  const sizes = manifests.flatMap((manifest): readonly (readonly [string, number])[] => {
    const { kind, namespace, name, json } = manifest;
    const loose = looseGangOf(manifest);
    if (loose !== undefined) return [[loose, 1]];
    if (kind !== "PodGroup") return [];
    const spec = fieldsOf(valueAt(json, ["spec"]));
    const policy = fieldsOf(spec.schedulingPolicy);
    const needed = spec.minMember ?? valueAt(policy.gang, ["minCount"]);
    const size = "basic" in policy ? 1 : wholeNumberOf(needed);
    return size === undefined ? [] : [[`pod group ${namespace}/${name}`, size]];
  });
  return new Map(sizes);
}

/** Whether it is an object with several pods that end together, and may land on Spot nodes. */
function endsOnSpot(manifest: Manifest, { manifests, scope }: AuditedFleet): boolean {
  const parts = gangPartsOf(manifest, manifests);
  const pods = parts.reduce((sum, part) => sum + part.pods, 0);
  const lands = parts.some((part) => {
    const pod = readPodTemplate(part.template);
    const isMeant = scope === "Possible" || namesSpot(pod);
    return part.pods > 0 && isMeant && landingOf(pod) !== "Never";
  });
  return pods > 1 && lands;
}
