import type { KubeObject } from "../../contracts/kube-api.ts";
import { isOnOneMachine, type VolumeSite } from "../../core/cluster/local-volume.ts";
import type {
  BudgetFacts,
  FailedPod,
  LabelRequirement,
  LabelSelector,
  OwnerFacts,
  PodFacts,
  Toleration,
} from "../../core/cluster/pod.ts";
import { holdsData } from "../../core/drain-plan/pod-obstacle.ts";
import {
  type Fields,
  fieldsOf,
  instantOf,
  listOf,
  numberOf,
  oneOf,
  textMapOf,
  textOf,
} from "../../core/json/json-field.ts";
import {
  conditionOf,
  keptAnnotations,
  nodeSelectorOf,
  podAnnotations,
  translatePlacement,
} from "./translate-node.ts";

const phases = ["Pending", "Running", "Succeeded", "Failed", "Unknown"] as const;
const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"] as const;
const tolerationOperators = ["Exists", "Equal"] as const;

/** What the API server sets if a pod has no `terminationGracePeriodSeconds`. */
export const defaultGraceSeconds = 30;

/**
 * The facts of a Pod object. Total: missing or invalid fields are undefined, empty or the default.
 */
export function translatePod(pod: KubeObject): PodFacts {
  const meta = fieldsOf(pod.metadata);
  const spec = fieldsOf(pod.spec);
  const status = fieldsOf(pod.status);
  const annotations = keptAnnotations(textMapOf(meta.annotations), podAnnotations);
  return {
    namespace: textOf(meta.namespace) ?? "default",
    name: textOf(meta.name) ?? "",
    uid: textOf(meta.uid) ?? "",
    nodeName: textOf(spec.nodeName) || undefined,
    phase: oneOf(phases, status.phase) ?? "Unknown",
    ready: conditionOf(status.conditions, "Ready").status === "True",
    labels: textMapOf(meta.labels),
    annotations,
    priority: numberOf(spec.priority) ?? 0,
    priorityClassName: textOf(spec.priorityClassName) || undefined,
    ...graceOf(spec.terminationGracePeriodSeconds),
    controller: controllerOf(meta.ownerReferences),
    mirror: "kubernetes.io/config.mirror" in annotations,
    ...volumesOf(spec, textOf(meta.name) ?? ""),
    tolerations: listOf(spec.tolerations).map(toToleration),
    bypassesScheduler: bypassesScheduler(meta.managedFields) || undefined,
    placement: translatePlacement(spec),
    createdAt: instantOf(meta.creationTimestamp),
    startedAt: instantOf(status.startTime),
    deletionAt: instantOf(meta.deletionTimestamp),
    deletionGraceSeconds: numberOf(meta.deletionGracePeriodSeconds),
  };
}

/** The facts that show which machine a pod failed with. */
export function translateFailedPod(pod: KubeObject): FailedPod {
  const meta = fieldsOf(pod.metadata);
  const status = fieldsOf(pod.status);
  return {
    namespace: textOf(meta.namespace) ?? "default",
    name: textOf(meta.name) ?? "",
    uid: textOf(meta.uid) ?? "",
    nodeName: textOf(fieldsOf(pod.spec).nodeName) || undefined,
    reason: textOf(status.reason),
    controller: controllerOf(meta.ownerReferences),
    createdAt: instantOf(meta.creationTimestamp),
    startedAt: instantOf(status.startTime),
  };
}

/** The API server treats a negative grace period as 1, and so does this. */
function graceOf(value: unknown): Pick<PodFacts, "graceSeconds" | "graceSource"> {
  const graceSeconds = numberOf(value);
  if (graceSeconds === undefined) {
    return { graceSeconds: defaultGraceSeconds, graceSource: "Default" };
  }
  return { graceSeconds: graceSeconds < 0 ? 1 : graceSeconds, graceSource: "Set" };
}

function controllerOf(owners: unknown): OwnerFacts | undefined {
  const owner = fieldsOf(listOf(owners).find((entry) => fieldsOf(entry).controller === true));
  const kind = textOf(owner.kind);
  if (kind === undefined) return undefined;
  const { 1: group = "" } = /^(.+)\/[^/]+$/.exec(textOf(owner.apiVersion) ?? "") ?? [];
  return { group, kind, name: textOf(owner.name) ?? "", uid: textOf(owner.uid) ?? "" };
}

/** Where a PersistentVolume is, by its spec. */
export function volumeSiteOf(spec: unknown): VolumeSite {
  const { local, hostPath, nodeAffinity } = fieldsOf(spec);
  const isHere = isThere(local) || isThere(hostPath);
  return {
    source: isHere ? "Machine" : "Elsewhere",
    nodes: nodeSelectorOf(fieldsOf(nodeAffinity).required),
  };
}

/**
 * The pod with what its volumes say: where they can be reached, and which end with the machine.
 * `specs` are the specs of the PersistentVolumes by claim, as far as they are known.
 */
export function withVolumeSpecs(pod: PodFacts, specs: ReadonlyMap<string, unknown>): PodFacts {
  const found = pod.volumeClaims.flatMap((claim) =>
    specs.has(claim) ? [{ claim, site: volumeSiteOf(specs.get(claim)) }] : [],
  );
  const volumeNodes = found.flatMap(({ site }) => site.nodes ?? []);
  const localClaims = found.filter(({ site }) => isOnOneMachine(site)).map(({ claim }) => claim);
  const placement = pod.placement && { ...pod.placement, volumeNodes };
  return { ...pod, placement, localClaims };
}

/** The claim of a generic ephemeral volume is named after the pod and the volume. */
function volumesOf(
  spec: Fields,
  podName: string,
): Pick<PodFacts, "emptyDir" | "hostPath" | "volumeClaims"> {
  const volumes = listOf(spec.volumes).map(fieldsOf);
  const withData = volumes.filter(isHostData);
  return {
    emptyDir: volumes.some(isEmptyDir),
    hostPath: withData.length > 0 && withData.some(({ name }) => isWrittenTo(name, spec)),
    volumeClaims: volumes.flatMap((volume) => {
      if (isThere(volume.ephemeral)) return [`${podName}-${textOf(volume.name) ?? ""}`];
      return textOf(fieldsOf(volume.persistentVolumeClaim).claimName) ?? [];
    }),
  };
}

/** Also true of a volume without a source. Source: kubernetes core/v1 SetDefaults_Volume. */
function isEmptyDir({ name, emptyDir, ...others }: Fields): boolean {
  return isThere(emptyDir) || !Object.values(others).some(isThere);
}

function isHostData({ hostPath }: Fields): boolean {
  if (!isThere(hostPath)) return false;
  const { path, type } = fieldsOf(hostPath);
  return holdsData({ path: textOf(path) ?? "", type: textOf(type) });
}

/** A volume that every container mounts read-only holds no data of the pod. */
function isWrittenTo(volume: unknown, { containers, initContainers }: Fields): boolean {
  return [...listOf(containers), ...listOf(initContainers)]
    .flatMap((container) => listOf(fieldsOf(container).volumeMounts))
    .map(fieldsOf)
    .some(({ name, readOnly }) => name === volume && readOnly !== true);
}

/**
 * A client that creates a pod with its node's name owns that field; a scheduler's binding leaves no
 * managed field. Source: kubernetes pkg/registry/core/pod/storage/storage.go,
 * setPodNodeAndMetadata.
 */
function bypassesScheduler(managed: unknown): boolean {
  return listOf(managed).some((entry) => {
    const { fieldsV1 } = fieldsOf(entry);
    return "f:nodeName" in fieldsOf(fieldsOf(fieldsV1)["f:spec"]);
  });
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function toToleration(value: unknown): Toleration {
  const toleration = fieldsOf(value);
  return {
    key: textOf(toleration.key),
    operator: oneOf(tolerationOperators, toleration.operator),
    value: textOf(toleration.value),
    effect: oneOf(effects, toleration.effect),
  };
}

const selectorOperators = ["In", "NotIn", "Exists", "DoesNotExist"] as const;

/** `In` without values matches no label. */
const impossible: LabelRequirement = { key: "", operator: "In", values: [] };

/**
 * The facts of a PodDisruptionBudget of policy/v1. Total: without a status it allows no disruption.
 */
export function translateBudget(budget: KubeObject): BudgetFacts {
  const meta = fieldsOf(budget.metadata);
  const spec = fieldsOf(budget.spec);
  const status = fieldsOf(budget.status);
  const generation = numberOf(meta.generation) ?? 0;
  return {
    namespace: textOf(meta.namespace) ?? "default",
    name: textOf(meta.name) ?? "",
    uid: textOf(meta.uid) ?? "",
    selector: toSelector(spec.selector),
    minAvailable: textOf(spec.minAvailable) ?? numberOf(spec.minAvailable),
    maxUnavailable: textOf(spec.maxUnavailable) ?? numberOf(spec.maxUnavailable),
    unhealthyPodEvictionPolicy:
      spec.unhealthyPodEvictionPolicy === "AlwaysAllow" ? "AlwaysAllow" : "IfHealthyBudget",
    disruptionsAllowed: numberOf(status.disruptionsAllowed) ?? 0,
    currentHealthy: numberOf(status.currentHealthy) ?? 0,
    desiredHealthy: numberOf(status.desiredHealthy) ?? 0,
    expectedPods: numberOf(status.expectedPods) ?? 0,
    observed: (numberOf(status.observedGeneration) ?? -1) >= generation,
    syncFailure: syncFailureOf(status.conditions),
  };
}

/** Source: kubernetes pkg/controller/disruption/disruption.go, failSafe. */
function syncFailureOf(conditions: unknown): string | undefined {
  const { status, reason, message } = conditionOf(conditions, "DisruptionAllowed");
  if (status !== "False" || reason !== "SyncFailed") return undefined;
  return textOf(message) || "the disruption controller does not say why";
}

/**
 * In policy/v1 an empty selector selects every pod of the namespace, and a missing one selects
 * none.
 */
function toSelector(value: unknown): LabelSelector {
  if (value === undefined || value === null) return { matchExpressions: [impossible] };
  const { matchLabels, matchExpressions } = fieldsOf(value);
  return {
    matchLabels: matchLabels === undefined ? undefined : textMapOf(matchLabels),
    matchExpressions:
      matchExpressions === undefined ? undefined : listOf(matchExpressions).map(toRequirement),
  };
}

/** An invalid requirement selects nothing; the API server still decides about each eviction. */
function toRequirement(value: unknown): LabelRequirement {
  const requirement = fieldsOf(value);
  const key = textOf(requirement.key);
  const operator = oneOf(selectorOperators, requirement.operator);
  if (key === undefined || operator === undefined) return impossible;
  return {
    key,
    operator,
    values: listOf(requirement.values).flatMap((item) => textOf(item) ?? []),
  };
}
