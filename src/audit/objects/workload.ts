import { defaultGraceSeconds, type GraceSource } from "../../core/drain-plan/grace-budget.ts";
import { listOf, valueAt, wholeNumberOf } from "../../core/json/json-field.ts";
import { describeValue, nameOf } from "../../core/json/shown-value.ts";
import { type PriorityClasses, resolvePriority } from "../priority.ts";
import { type Manifest, placeOf } from "./manifest.ts";
import { type PodTemplate, readPodTemplate } from "./pod-template.ts";
import { workloadKindOf } from "./workload-kind.ts";

/** Something that makes pods, and what those pods ask for. */
export interface Workload {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** The object that was read: the workload's own, or one pod of an owner that the input lacks. */
  readonly manifest: Manifest;
  readonly template: PodTemplate;
  /** Pods at a time; absent for a DaemonSet, and where the number is no number. */
  readonly replicas?: number | undefined;
  readonly priority: number;
  /** A priority class that was named and is not in the input; its value was taken as 0. */
  readonly unknownPriorityClass?: string | undefined;
  readonly wantedGraceSeconds: number;
  readonly graceSource: GraceSource;
}

export type ReadWorkload =
  | { readonly kind: "Workload"; readonly workload: Workload }
  | { readonly kind: "Problem"; readonly problem: string };

/** Reads one object of a workload kind; a grace that is no grace is a problem of the input. */
export function readWorkload(manifest: Manifest, classes: PriorityClasses): ReadWorkload {
  const kind = workloadKindOf(manifest);
  const template = valueAt(manifest.json, kind?.templatePath ?? []);
  const podSpec = valueAt(template, ["spec"]);
  const grace = readGrace(podSpec, manifest, kind?.templatePath ?? []);
  if (grace.kind === "Problem") return grace;
  const { priority, unknownClass } = resolvePriority(podSpec, classes);
  const workload: Workload = {
    kind: manifest.kind,
    namespace: manifest.namespace,
    name: manifest.name,
    manifest,
    template: asItsController(readPodTemplate(template), manifest),
    replicas: readReplicas(manifest, kind?.replicasPath),
    priority,
    unknownPriorityClass: unknownClass,
    wantedGraceSeconds: grace.seconds,
    graceSource: grace.source,
  };
  return { kind: "Workload", workload };
}

/** The template as the workload's controller completes it for each of its pods. */
function asItsController(template: PodTemplate, manifest: Manifest): PodTemplate {
  if (manifest.kind === "Job") return withJobName(template, manifest.name);
  return manifest.kind === "StatefulSet" ? withClaims(template, manifest) : template;
}

/** Source: kubernetes api batch/v1. */
function withJobName(template: PodTemplate, name: string): PodTemplate {
  const written = { "job-name": name, "batch.kubernetes.io/job-name": name };
  return { ...template, labels: { ...template.labels, ...written } };
}

/** A claim takes the place of the volume of its name. Source: kubernetes stateful_set_utils.go. */
function withClaims(template: PodTemplate, { json }: Manifest): PodTemplate {
  const claims = listOf(valueAt(json, ["spec", "volumeClaimTemplates"])).map((claim) =>
    nameOf(valueAt(claim, ["metadata", "name"])),
  );
  return { ...template, volumes: template.volumes.filter(({ name }) => !claims.includes(name)) };
}

type ReadGrace =
  | { readonly kind: "Grace"; readonly seconds: number; readonly source: GraceSource }
  | { readonly kind: "Problem"; readonly problem: string };

function readGrace(
  podSpec: unknown,
  manifest: Manifest,
  templatePath: readonly string[],
): ReadGrace {
  const field = "terminationGracePeriodSeconds";
  const written = valueAt(podSpec, [field]);
  if (written === undefined || written === null) {
    return { kind: "Grace", seconds: defaultGraceSeconds, source: "Default" };
  }
  const seconds = wholeNumberOf(written);
  if (seconds === undefined || seconds < 0) {
    const problem =
      `Cannot audit ${placeOf(manifest, [...templatePath, "spec", field])}: ${field} is ` +
      `${describeValue(written)}, expected a whole number of seconds from 0 on`;
    return { kind: "Problem", problem };
  }
  return {
    kind: "Grace",
    seconds,
    source: isServersDefault(manifest, seconds) ? "Default" : "Set",
  };
}

/**
 * The API server writes 30 into every pod that names no grace, so on an object that it gave back
 * 30 says nothing; unless the text that kubectl applied names it.
 */
function isServersDefault(manifest: Manifest, graceSeconds: number): boolean {
  if (manifest.origin !== "Recorded" || graceSeconds !== defaultGraceSeconds) return false;
  const applied = manifest.annotations["kubectl.kubernetes.io/last-applied-configuration"];
  return !applied?.includes('"terminationGracePeriodSeconds":30');
}

/** The API server's default is 1; text there (a value of a template) means that nobody knows. */
function readReplicas(manifest: Manifest, path: readonly string[] | undefined): number | undefined {
  if (manifest.kind === "DaemonSet") return undefined;
  const written = path === undefined ? undefined : valueAt(manifest.json, path);
  return written === undefined || written === null ? 1 : wholeNumberOf(written);
}
