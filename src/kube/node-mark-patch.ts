import type { KubeObject } from "../contracts/kube-api.ts";
import type { DepartingMark, UnmarkTarget } from "../contracts/node-marks.ts";

/** The marks of contract.md section 3. */
export const departingTaint = "lastcall.dev/departing";
export const departureAnnotation = "lastcall.dev/departure";
export const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers";
export const excludeValue = "lastcall";

/** An RFC 6902 operation. */
export type PatchOperation =
  | { readonly op: "test" | "add" | "replace"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

interface RawTaint {
  readonly key: string;
}

/**
 * The one patch that marks a node as departing: cordon, taint, annotation and load-balancer label.
 * `node` is the object as just read; its resourceVersion is tested, so that the server refuses the
 * patch whole if anybody has written in between, and no taint of theirs is lost (taints are one
 * atomic list, which a merge would replace).
 */
export function markPatch(
  node: KubeObject,
  mark: Pick<DepartingMark, "departure" | "cause">,
): PatchOperation[] {
  const taint = { key: departingTaint, value: mark.cause, effect: "NoSchedule" };
  const others = taintsOf(node).filter((other) => other.key !== departingTaint);
  return [
    testVersion(node),
    { op: "add", path: "/spec/unschedulable", value: true },
    { op: "add", path: "/spec/taints", value: [...others, taint] },
    addEntry(node, "annotations", { key: departureAnnotation, value: mark.departure }),
    ...(entriesOf(node, "labels")?.[excludeLabel] === undefined
      ? [addEntry(node, "labels", { key: excludeLabel, value: excludeValue })]
      : []),
  ];
}

/** The one patch that takes back what `markPatch` wrote, and nothing else. */
export function unmarkPatch(node: KubeObject, target: UnmarkTarget): PatchOperation[] {
  const operations: PatchOperation[] = [testVersion(node)];
  const spec = node.spec as { unschedulable?: boolean } | undefined;
  if (spec?.unschedulable === true && !target.staysCordoned) {
    operations.push({ op: "remove", path: "/spec/unschedulable" });
  }
  const taints = taintsOf(node);
  const others = taints.filter((taint) => taint.key !== departingTaint);
  if (others.length < taints.length) {
    operations.push({ op: "replace", path: "/spec/taints", value: others });
  }
  operations.push({ op: "remove", path: entryPath("annotations", departureAnnotation) });
  if (entriesOf(node, "labels")?.[excludeLabel] === excludeValue) {
    operations.push({ op: "remove", path: entryPath("labels", excludeLabel) });
  }
  return operations;
}

function testVersion(node: KubeObject): PatchOperation {
  return {
    op: "test",
    path: "/metadata/resourceVersion",
    value: node.metadata?.resourceVersion,
  };
}

function taintsOf(node: KubeObject): readonly RawTaint[] {
  return (node.spec as { taints?: readonly RawTaint[] } | undefined)?.taints ?? [];
}

type EntryField = "annotations" | "labels";

function entriesOf(
  node: KubeObject,
  field: EntryField,
): Readonly<Record<string, string>> | undefined {
  return node.metadata?.[field];
}

function addEntry(
  node: KubeObject,
  field: EntryField,
  entry: { readonly key: string; readonly value: string },
): PatchOperation {
  if (entriesOf(node, field) === undefined) {
    return { op: "add", path: `/metadata/${field}`, value: { [entry.key]: entry.value } };
  }
  return { op: "add", path: entryPath(field, entry.key), value: entry.value };
}

/** RFC 6901: `~` and `/` are escaped. */
function entryPath(field: EntryField, key: string): string {
  return `/metadata/${field}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
