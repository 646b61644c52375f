/** Annotations that ask to leave a pod or a node alone. */
import { type MarkReading, nodeMarkReading } from "../../core/cluster/node.ts";
import { podMarkReading } from "../../core/drain-plan/pod-obstacle.ts";
import { fieldsOf, textOf, valueAt } from "../../core/json/json-field.ts";
import { markMeant } from "../../core/time/named-time.ts";
import type { AuditedFleet } from "../fleet.ts";
import type { FieldPointer, Manifest } from "../objects/manifest.ts";
import { type Workload, workloadKindOf } from "../objects/workload.ts";
import { type Remark, type Rule, spotWorkloads } from "../report.ts";

export const unreadableMark: Rule = {
  id: "unreadable-mark",
  severity: "warning",
  title: "an annotation that asks to leave a pod or a node alone cannot be read",
  why: "Nobody is told when such an annotation is written. A value of lastcall.dev/do-not-disturb, lastcall.dev/hold or, on pods, karpenter.sh/do-not-disrupt that is neither a boolean nor a time counts as true, because somebody wants the pod or the node to stay: the node then stays until its deadline or longer, although two hours were meant. The annotations of other tools on nodes, and cluster-autoscaler's safe-to-evict, have no effect unless they are spelled as those tools read them.",
  fix: 'Write "true", "false", or a duration such as "2h"; on a node also an instant such as "2026-12-01T00:00:00Z". Durations count from the start of the pod or the launch of the machine.',
  whenNotToUse: "The object is a template that another tool fills in before it reaches a cluster.",
  bad: {
    yaml: `apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  activeDeadlineSeconds: 3000
  template:
    metadata:
      annotations: {lastcall.dev/do-not-disturb: "2 hours"}
    spec:
      restartPolicy: Never
      containers: [{name: train, image: train}]
`,
  },
  good: {
    yaml: `apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  activeDeadlineSeconds: 3000
  template:
    metadata:
      annotations: {lastcall.dev/do-not-disturb: "2h"}
    spec:
      restartPolicy: Never
      containers: [{name: train, image: train}]
`,
  },
  check: checkMarks,
};

function checkMarks(fleet: AuditedFleet): readonly Remark[] {
  const workloads = spotWorkloads(fleet);
  const told = new Set(
    workloads.flatMap((workload) =>
      marksAt(workload.manifest, podMetadata(workload)).map((mark) => keyIn(workload, mark)),
    ),
  );
  // Someone may have annotated one pod: then no workload shows it.
  const pods = fleet.manifests.filter(
    (manifest) => manifest.kind === "Pod" && manifest.group === "" && !isFinished(manifest),
  );
  const judged = new Set(workloads.map(({ manifest }) => manifest));
  return [
    ...workloads.flatMap((workload) => podRemarks(workload, podMetadata(workload))),
    ...pods
      .filter((pod) => !judged.has(pod))
      .flatMap((pod) => podRemarks(pod, ["metadata"], (mark) => !told.has(keyIn(pod, mark)))),
    ...fleet.manifests
      .filter(({ kind, group }) => kind === "Node" && group === "")
      .flatMap(nodeRemarks),
  ];
}

interface Mark {
  readonly key: string;
  readonly value: unknown;
  readonly field: FieldPointer;
}

function marksAt(manifest: Manifest, metadata: readonly string[]): readonly Mark[] {
  const annotations = fieldsOf(valueAt(manifest.json, [...metadata, "annotations"]));
  return Object.entries(annotations).map(([key, value]) => {
    return { key, value, field: [...metadata, "annotations", key] };
  });
}

function podMetadata({ manifest }: Workload): readonly string[] {
  return [...(workloadKindOf(manifest)?.templatePath ?? []), "metadata"];
}

function keyIn({ namespace }: { readonly namespace: string }, { key, value }: Mark): string {
  return JSON.stringify([namespace, key, value]);
}

function isFinished(pod: Manifest): boolean {
  const phase = textOf(valueAt(pod.json, ["status", "phase"]));
  return phase === "Succeeded" || phase === "Failed";
}

function podRemarks(
  about: Workload | Manifest,
  metadata: readonly string[],
  isUntold: (mark: Mark) => boolean = () => true,
): readonly Remark[] {
  const manifest = "manifest" in about ? about.manifest : about;
  return marksAt(manifest, metadata)
    .filter(isUntold)
    .flatMap((mark) =>
      remarksOn(mark, {
        ...{ about, read: (value) => podMarkReading(mark.key, value) },
        stays: "its pods are not evicted in a planned departure, however old they are",
        leaves: "its pods are evicted like any other",
        timed: ['for how long from the pod\'s start, such as "2h"'],
      }),
    );
}

function nodeRemarks(about: Manifest): readonly Remark[] {
  return marksAt(about, ["metadata"]).flatMap((mark) =>
    remarksOn(mark, {
      ...{ about, read: (value) => nodeMarkReading(mark.key, value) },
      stays: "the node is held until the annotation is removed",
      leaves: "the node leaves like any other",
      timed: [
        'for how long from its launch, such as "4h"',
        'an instant such as "2026-12-01T00:00:00Z"',
      ],
    }),
  );
}

interface MarkEffect {
  readonly about: Workload | Manifest;
  /** Undefined if the annotation is no such mark. */
  readonly read: (value: string) => MarkReading | undefined;
  readonly stays: string;
  readonly leaves: string;
  /** What may be written besides a boolean. */
  readonly timed: readonly string[];
}

function remarksOn({ key, value, field }: Mark, effect: MarkEffect): readonly Remark[] {
  const { about, read, stays, leaves } = effect;
  if (typeof value === "boolean" || typeof value === "number") {
    if (read("") === undefined) return [];
    const message = `Has the annotation ${key}: ${value} without quotes, which the API server refuses`;
    return [{ severity: "warning", about, field, message, fix: `Write "${value}"` }];
  }
  if (typeof value !== "string") return [];
  const reading = read(value);
  if (reading === undefined || reading === "Readable") return [];
  const isHeld = reading === "CountsAsTrue";
  const message = `Has the annotation ${key}: ${JSON.stringify(value)}, which cannot be read: ${isHeld ? stays : leaves}`;
  const fix = fixOf(value, isHeld ? effect.timed : []);
  return [{ severity: "warning", about, field, message, fix }];
}

function fixOf(value: string, timed: readonly string[]): string {
  const forms = ['"true"', '"false"', ...timed];
  const expected = `${forms.slice(0, -1).join(", ")}${forms.length > 2 ? "," : ""} or ${forms.at(-1)}`;
  const meant = markMeant(value);
  // A duration is no form of a mark that takes a boolean alone.
  const isForm = meant !== undefined && (timed.length > 0 || forms.includes(meant));
  return isForm ? `Write ${meant}; expected are ${expected}` : `Write ${expected}`;
}
