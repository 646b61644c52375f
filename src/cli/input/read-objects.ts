import type { KubeObject } from "../../contracts/kube-api.ts";
import { LastcallError } from "../../errors.ts";
import { type ManifestFiles, type ReadManifests, readManifests } from "./read-manifests.ts";

/** An object, and the file it was read from. */
export interface ReadObject {
  readonly file: string;
  readonly object: KubeObject;
}

/** What a plan reads: one of these without items is half an answer, and no empty list. */
const listOfFleet =
  /^(Node|Pod|PodDisruptionBudget|Namespace|DaemonSet|Departure|DeparturePolicy)List$/;

/**
 * Reads what `kubectl get … -o json` (or yaml) wrote, from the same files, folders and standard
 * input as the audit. A list of one kind without items is given as it is. What the audit passes
 * over is refused here: a plan of half a fleet is another plan. Throws INPUT_UNREADABLE, and
 * INPUT_INVALID for what is no Kubernetes object, with file and line.
 */
export async function readObjects(
  paths: readonly string[],
  files: ManifestFiles,
): Promise<readonly ReadObject[]> {
  const read = await readManifests(paths, { files, detail: "Values" });
  const [unreadable] = read.unreadable;
  if (unreadable !== undefined) throw new LastcallError("INPUT_UNREADABLE", unreadable);
  const objects = [...read.sources, ...read.emptyLists].map(({ file = "-", json }) => ({
    file: file === "-" ? "standard input" : file,
    object: json as KubeObject,
  }));
  const [problem] = [...read.problems, ...incomplete(read), ...objects.flatMap(withoutItems)];
  if (problem !== undefined) throw new LastcallError("INPUT_INVALID", problem);
  return objects;
}

/** As a pipe from a kubectl that has failed: no fleet is not the same as an empty one. */
function incomplete({ empty, others }: ReadManifests): readonly string[] {
  const output = "expected the output of kubectl get -o json";
  return [
    ...empty.map(({ path, kind }) =>
      kind === "Folder"
        ? `Cannot read ${path}: found no .json, .yaml or .yml file, ${output}`
        : `Cannot read ${path === "-" ? "standard input" : path}:1: found nothing, ${output}`,
    ),
    ...others.map((at) => `Cannot read ${at}: found no kind, ${output}`),
  ];
}

function withoutItems({ file, object }: ReadObject): readonly string[] {
  const { kind = "", items } = object as KubeObject & { readonly items?: unknown };
  if (!listOfFleet.test(kind) || Array.isArray(items)) return [];
  return [`Cannot read ${file}: found a ${kind} without items`];
}
