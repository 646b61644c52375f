import type { AuditedFleet } from "./fleet.ts";
import { type Manifest, nameOfObject } from "./objects/manifest.ts";
import type { Workload } from "./objects/workload.ts";
import type { Platform } from "./platform.ts";

/** From what hurts most. `error`: pods will be lost or a drain will stand still. */
export const severities = ["error", "warning", "info"] as const;

export type Severity = (typeof severities)[number];

/** One thing that a rule has to say about one object. */
export interface Finding {
  readonly rule: string;
  readonly severity: Severity;
  /** The platform on which it holds; null where it holds on all. */
  readonly platform: string | null;
  readonly object: string;
  readonly message: string;
  readonly fix: string;
  readonly file: string | null;
  readonly line: number | null;
}

/** What a rule says of an object, before the audit puts the rule's name on it. */
export interface Remark {
  readonly severity: Severity;
  readonly platform?: string;
  /** What it is about; absent: the platform itself. */
  readonly about: Workload | Manifest | undefined;
  /** Where to point in the input for what is about a platform: an example. */
  readonly example?: Workload | undefined;
  readonly message: string;
  readonly fix: string;
}

/** Manifests that show a rule; the tests run both. */
export interface RuleExample {
  /** YAML of one or more documents. */
  readonly yaml: string;
  /** Platforms to judge against; absent: `gke`. */
  readonly platforms?: readonly string[];
}

/** One rule of the audit: everything that its page in the documentation says, and the check. */
export interface Rule {
  readonly id: string;
  /** The worst that it may say. */
  readonly severity: Severity;
  /** One sentence without a period: what is found. */
  readonly title: string;
  readonly why: string;
  readonly fix: string;
  readonly whenNotToUse: string;
  /** Must be flagged. */
  readonly bad: RuleExample;
  /** Must not be flagged. */
  readonly good: RuleExample;
  check(fleet: AuditedFleet, platforms: readonly Platform[]): readonly Remark[];
}

/**
 * Kinds that keep a number of pods alive; Jobs and bare pods do not, a DaemonSet has one a node.
 */
const replicated = new Set(["Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"]);

export function isReplicated(workload: Workload): boolean {
  return replicated.has(workload.kind);
}

/** The workloads that a Spot rule concerns: all but those that are kept off Spot nodes. */
export function spotWorkloads(fleet: AuditedFleet): readonly Workload[] {
  return [...fleet.onSpot];
}

export function asFinding(rule: Rule, remark: Remark): Finding {
  const { about } = remark;
  const place = about ?? remark.example;
  const manifest = place !== undefined && "manifest" in place ? place.manifest : place;
  return {
    rule: rule.id,
    severity: remark.severity,
    platform: remark.platform ?? null,
    object: about === undefined ? `Platform ${remark.platform}` : nameOfObject(about),
    message: remark.message,
    fix: remark.fix,
    file: manifest?.file ?? null,
    line: manifest?.line ?? null,
  };
}
